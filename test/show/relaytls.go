package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"time"
)

// relayTLS is one of two relays that speak TLS with each other, and do nothing else.
type relayTLS struct {
	listen func(context.Context) (net.Listener, error)
	dial   func(context.Context) (net.Conn, error)
}

// relayTLSOf reads its command line: to LISTEN TARGET speaks TLS with the target, from
// LISTEN TARGET with who calls.
func relayTLSOf(args []string) (relayTLS, error) {
	const most = 3
	if len(args) != most || args[0] != "to" && args[0] != "from" {
		return relayTLS{}, errors.New("relay-tls takes to|from LISTEN TARGET")
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

// serve relays until ctx ends.
func (r relayTLS) serve(ctx context.Context) error {
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
		go r.pass(ctx, conn)
	}
}

// pass carries one connection. What one side has said in full, the other is told.
func (r relayTLS) pass(ctx context.Context, near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := r.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	done := make(chan struct{})
	copied := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // the end of either is the end of both
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	go func() {
		copied(far, near)
		close(done)
	}()
	copied(near, far)
	<-done
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
