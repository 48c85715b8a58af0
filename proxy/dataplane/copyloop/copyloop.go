// Package copyloop is the data plane of kube-proxy's user space mode, which Kubernetes 1.26
// no longer has, made anew to be measured against: nobody should serve by it. As that did,
// it calls the endpoint of one connection after the other, so that each waits for the
// handshakes of those before it; it copies with a goroutine a direction; and it closes both
// sides as soon as one of them has ended, so that an answer to who has said all is lost. It
// carries TCP alone. Start at Plane.
package copyloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/proxy/dataplane"
)

// ErrUnreached is of a call whose endpoints did not take it.
var ErrUnreached = errors.New("no endpoint takes the connection")

// tries are how long each endpoint that is chosen for a connection has to accept.
func tries() []time.Duration {
	return []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
}

// A Plane carries connections.
type Plane struct {
	chooser   dataplane.Chooser
	mark      int
	listeners []*net.TCPListener

	mu   sync.Mutex
	open map[*net.TCPConn]bool
	all  sync.WaitGroup
}

// New listens. Run carries; without it, Close gives back what New took. What is sent to
// endpoints is marked so; 0 is not.
func New(listen []netip.AddrPort, mark int, chooser dataplane.Chooser) (*Plane, error) {
	p := &Plane{chooser: chooser, mark: mark, open: map[*net.TCPConn]bool{}}
	for _, at := range listen {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for the copy loop: %w", err), p.Close())
		}
		p.listeners = append(p.listeners, l)
	}
	return p, nil
}

// Addresses are where it listens.
func (p *Plane) Addresses() (all []netip.AddrPort) {
	for _, l := range p.listeners {
		all = append(all, l.Addr().(*net.TCPAddr).AddrPort())
	}
	return all
}

// Run carries until ctx ends, and what is open then until it has ended by itself, or drain
// has passed.
func (p *Plane) Run(ctx context.Context, drain time.Duration) error {
	for _, l := range p.listeners {
		p.all.Go(func() { p.accept(ctx, l) })
	}
	<-ctx.Done()
	err := p.Close()
	late := time.AfterFunc(drain, p.end)
	p.all.Wait()
	late.Stop()
	return err
}

// Close has nothing more accepted.
func (p *Plane) Close() error {
	var err error
	for _, l := range p.listeners {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// end closes what is open.
func (p *Plane) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// accept takes one connection after the other, and calls its endpoint before the next.
func (p *Plane) accept(ctx context.Context, l *net.TCPListener) {
	const again = 10 * time.Millisecond // where there is no descriptor
	for {
		client, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(again)
			continue
		}
		choice, server, err := p.reach(ctx, client)
		if err != nil {
			_ = client.SetLinger(0)
			_ = client.Close()
			continue
		}
		p.all.Go(func() { p.carry(client, server, choice) })
	}
}

// reach calls the endpoint that is chosen, or another.
func (p *Plane) reach(ctx context.Context, client *net.TCPConn) (choice dataplane.Choice, server *net.TCPConn, err error) {
	target, err := targetOf(client)
	if err != nil {
		return choice, nil, err
	}
	call := dataplane.Call{Target: target, Client: client.RemoteAddr().(*net.TCPAddr).AddrPort()}
	for _, wait := range tries() {
		if choice, err = p.chooser.Choose(call); err != nil {
			return choice, nil, err
		}
		choice.Call = call
		dialer := net.Dialer{Timeout: wait, Control: p.control}
		c, err := dialer.DialContext(ctx, "tcp", choice.Endpoint.String())
		if err == nil {
			return choice, c.(*net.TCPConn), nil
		}
		p.chooser.Done(&choice, dataplane.Failed)
		call.Tried = append(call.Tried, choice.Endpoint)
	}
	return choice, nil, ErrUnreached
}

// control marks a socket before it calls.
func (p *Plane) control(_, _ string, c syscall.RawConn) (err error) {
	if p.mark == 0 {
		return nil
	}
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, p.mark) })
	return errors.Join(failed, err)
}

// targetOf a connection is what it was meant for.
func targetOf(c *net.TCPConn) (target netip.AddrPort, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return target, err
	}
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	failed := raw.Control(func(fd uintptr) {
		target, err = dataplane.OriginalDestination(int(fd), netip.AddrPortFrom(local.Addr().Unmap(), local.Port()))
	})
	return target, errors.Join(failed, err)
}

// carry copies until one side has ended.
func (p *Plane) carry(client, server *net.TCPConn, choice dataplane.Choice) {
	p.keep(client, server)
	var both sync.WaitGroup
	for from, to := range map[*net.TCPConn]*net.TCPConn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from) // however it ends, it is over
			_ = to.Close()
			_ = from.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
	p.chooser.Done(&choice, dataplane.Served)
}

// keep notes what is open.
func (p *Plane) keep(conns ...*net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.open[c] = true
	}
}
