package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/userspace"
)

// carriers are ways to carry connections in user space: the proxy's, and what anybody
// would write first.
var carriers = map[string]func(ctx context.Context, l net.Listener, target string) error{
	// What is read is copied by a goroutine each way, through this process.
	"copy": func(ctx context.Context, l net.Listener, target string) error {
		return carryEach(ctx, l, target, func(to, from *net.TCPConn) { _, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}) })
	},
	// Go's own splice(2), by a goroutine each way.
	"splice": func(ctx context.Context, l net.Listener, target string) error {
		return carryEach(ctx, l, target, func(to, from *net.TCPConn) { _, _ = io.Copy(to, from) })
	},
}

// carry is a process that carries connections: the role carry of this program.
func carry(ctx context.Context, args []string) error {
	const usage = "carry takes plane, bare, copy or splice, LISTEN and TARGET"
	if len(args) != 3 {
		return errors.New(usage)
	}
	switch args[0] {
	case "plane":
		return carryByPlane(ctx, args[1], args[2])
	case "bare":
		return carryBare(args[1], args[2])
	}
	how, ok := carriers[args[0]]
	if !ok {
		return errors.New(usage)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", args[1])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	return how(ctx, l, args[2])
}

// carryEach carries each connection by two goroutines.
func carryEach(ctx context.Context, l net.Listener, target string, move func(to, from *net.TCPConn)) error {
	for {
		client, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := new(net.Dialer).DialContext(ctx, "tcp", target)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			back := make(chan struct{})
			c, s := client.(*net.TCPConn), server.(*net.TCPConn)
			go func() {
				defer close(back)
				move(c, s)
				_ = c.CloseWrite()
			}()
			move(s, c)
			_ = s.CloseWrite()
			<-back
		}()
	}
}

// always is a Chooser of one endpoint.
type always netip.AddrPort

func (a always) Choose(dataplane.Call) (dataplane.Choice, error) {
	return dataplane.Choice{Endpoint: netip.AddrPort(a)}, nil
}
func (always) Answered(*dataplane.Choice)                {}
func (always) Serves(*dataplane.Choice) bool             { return true }
func (always) Done(*dataplane.Choice, dataplane.Outcome) {}

func carryByPlane(ctx context.Context, listen, target string) error {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	p, err := userspace.New(userspace.Config{Listen: []netip.AddrPort{at}}, always(to))
	if err != nil {
		return err
	}
	if err := p.Run(ctx, time.Second); err != nil {
		return fmt.Errorf("carry: %w", err)
	}
	return nil
}
