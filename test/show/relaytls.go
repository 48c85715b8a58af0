package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"syscall"
	"time"
)

// relayTLS is one of two relays that speak TLS with each other, and do nothing else.
type relayTLS struct {
	listen func(context.Context) (net.Listener, error)
	dial   func(context.Context) (net.Conn, error)
	ahead  int // connections that are open before the first is needed; none is used twice
}

// relayTLSOf reads its command line: to LISTEN TARGET [AHEAD] speaks TLS with the target,
// from LISTEN TARGET with who calls.
func relayTLSOf(args []string) (relayTLS, error) {
	const usage = "relay-tls takes to LISTEN TARGET [AHEAD], or from LISTEN TARGET"
	const least = 3
	if len(args) < least || args[0] != "to" && args[0] != "from" {
		return relayTLS{}, errors.New(usage)
	}
	certificate, err := selfSigned()
	if err != nil {
		return relayTLS{}, err
	}
	// Nobody is known here: what it costs is asked, not who it is.
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	r := relayTLS{
		listen: func(ctx context.Context) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", args[1])
		},
		dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", args[2]) },
	}
	if args[0] == "to" {
		r.dial = func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", args[2])
		}
		if len(args) > least {
			if r.ahead, err = strconv.Atoi(args[least]); err != nil {
				return relayTLS{}, fmt.Errorf("%s: %w", usage, err)
			}
		}
		return r, nil
	}
	plain := r.listen
	r.listen = func(ctx context.Context) (net.Listener, error) {
		l, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		return tls.NewListener(l, config), nil
	}
	return r, nil
}

// serve relays until ctx ends. It listens when the connections ahead are open.
func (r relayTLS) serve(ctx context.Context) error {
	stock := make(chan net.Conn, r.ahead)
	for len(stock) < r.ahead {
		conn, err := r.dial(ctx)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // the other is about to listen
			time.Sleep(10 * time.Millisecond)
		case err != nil:
			return err
		default:
			stock <- conn // it ends with the program, where it is not needed
		}
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go r.pass(ctx, conn, stock)
	}
}

// pass carries one connection, from when something is said. What one side has said in
// full, the other is told.
func (r relayTLS) pass(ctx context.Context, near net.Conn, stock <-chan net.Conn) {
	defer func() { _ = near.Close() }()
	first := make([]byte, 16<<10)
	n, err := near.Read(first)
	if err != nil {
		return
	}
	far, err := r.far(ctx, stock)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	if _, err := far.Write(first[:n]); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		copied(near, far, make([]byte, len(first)))
		close(done)
	}()
	copied(far, near, first)
	<-done
}

// far is a connection to the other side.
func (r relayTLS) far(ctx context.Context, stock <-chan net.Conn) (net.Conn, error) {
	select {
	case conn := <-stock:
		return conn, nil
	default:
		return r.dial(ctx)
	}
}

// copied passes on what is said until either side has ended.
func copied(to, from net.Conn, buffer []byte) {
	// Without what else they can, which would copy by a buffer of its own.
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
