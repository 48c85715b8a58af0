// Package userspace is the proxy's data plane without help of the kernel but for
// redirection: it accepts a connection that was meant for a Service, calls the endpoint
// that its Chooser names, and carries bytes between the two until both have ended.
//
// A connection: accept → original destination → Choose → connect → relay → close. Each
// loop is one goroutine that waits for its epoll and holds all that there is of its
// connections, so nothing on the way takes a lock but Choose. relay.go has the way of a
// byte, loop.go that of an event, udp.go that of a datagram.
//
// It does not know Kubernetes: who serves what is the Chooser's.
package userspace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/proxy/dataplane"
)

// Config is how a plane carries. What is 0 has its default.
type Config struct {
	// Listen is where redirected connections arrive, such as 0.0.0.0:0 and [::]:0.
	Listen []netip.AddrPort
	// Loops is how many goroutines carry. Default: one a core.
	Loops int
	// ConnectTimeout is how long an endpoint may take to accept. Default 3 s.
	ConnectTimeout time.Duration
	// Tries is how many endpoints are tried for a connection. Default 3.
	Tries int
	// SessionIdle is how long a client of UDP without datagrams is remembered. Default 2 min.
	SessionIdle time.Duration
	// Sessions is how many clients of UDP are remembered. Default 20,000.
	Sessions int
	// Mark is put on what is sent to endpoints (SO_MARK), so that nobody brings it here again.
	// 0 is none.
	Mark int32
	// Target tells what a connection was meant for. Default: OriginalDestination.
	Target func(fd int, local netip.AddrPort) (netip.AddrPort, error)
}

func (c Config) withDefaults() Config {
	if c.Loops == 0 {
		c.Loops = runtime.GOMAXPROCS(0)
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	if c.Tries == 0 {
		c.Tries = 3
	}
	if c.SessionIdle == 0 {
		c.SessionIdle = sessionIdle
	}
	if c.Sessions == 0 {
		c.Sessions = sessionsMost
	}
	if c.Target == nil {
		c.Target = dataplane.OriginalDestination
	}
	return c
}

// Counts are of all connections, and datagrams, since the start.
type Counts struct {
	Open, Accepted, Refused, Unreached, Reset int64
	BytesIn, BytesOut                         int64 // from clients, and to them
	Spliced                                   int64 // of both, what never was in this process
	Dropped                                   int64 // datagrams that nobody could serve
	Evicted                                   int64 // clients of UDP that were forgotten for others
}

// counters are a loop's Counts, read by others.
type counters struct {
	open, accepted, refused, unreached, reset, in, out, spliced, dropped, evicted atomic.Int64
}

// A Plane carries connections.
type Plane struct {
	config  Config
	chooser dataplane.Chooser
	loops   []*loop
}

// New listens. Run carries; without it, Close gives back what New took.
func New(config Config, chooser dataplane.Chooser) (*Plane, error) {
	p := &Plane{config: config.withDefaults(), chooser: chooser}
	addresses := append([]netip.AddrPort(nil), config.Listen...)
	for range p.config.Loops {
		l, err := newLoop(p)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.loops = append(p.loops, l)
		// All loops listen at the ports that the first one got.
		for i, at := range addresses {
			if addresses[i], err = l.listen(at); err != nil {
				return nil, errors.Join(fmt.Errorf("listen at %s: %w", at, err), p.Close())
			}
		}
	}
	p.config.Listen = addresses
	return p, nil
}

// Addresses are where it listens, in the order of Config.Listen, with ports.
func (p *Plane) Addresses() []netip.AddrPort { return p.config.Listen }

// Run carries until ctx ends: then nothing more is accepted, and what is open is closed
// once it has ended by itself, or drain has passed.
func (p *Plane) Run(ctx context.Context, drain time.Duration) error {
	var all sync.WaitGroup
	errs := make([]error, len(p.loops))
	for i, l := range p.loops {
		all.Go(func() { errs[i] = l.run() })
	}
	told := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(told)
		for _, l := range p.loops {
			l.end(drain)
		}
	})
	all.Wait()
	if !forget() {
		<-told
	}
	return errors.Join(append(errs, p.Close())...)
}

// AwaitOpen waits until the connections that are open now have ended, or ctx does. Once.
func (p *Plane) AwaitOpen(ctx context.Context) {
	var open sync.WaitGroup
	for _, l := range p.loops {
		open.Add(1)
		if !l.tell(func(l *loop) {
			for _, s := range l.sides {
				if s != nil && s == &s.conn.client {
					open.Add(1)
					s.conn.ended = open.Done
				}
			}
			open.Done()
		}) {
			open.Done()
		}
	}
	none := make(chan struct{})
	go func() { // Run, or Close, ends all
		open.Wait()
		close(none)
	}()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// Close gives back descriptors, once. Run has done so.
func (p *Plane) Close() error {
	var err error
	for _, l := range p.loops {
		err = errors.Join(err, l.close())
	}
	return err
}

// Counts are what the plane has carried.
func (p *Plane) Counts() Counts {
	var c Counts
	for _, l := range p.loops {
		n := &l.counts
		c.Open += n.open.Load()
		c.Accepted += n.accepted.Load()
		c.Refused += n.refused.Load()
		c.Unreached += n.unreached.Load()
		c.Reset += n.reset.Load()
		c.BytesIn += n.in.Load()
		c.BytesOut += n.out.Load()
		c.Spliced += n.spliced.Load()
		c.Dropped += n.dropped.Load()
		c.Evicted += n.evicted.Load()
	}
	return c
}
