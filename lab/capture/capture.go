// Package capture writes packets as pcapng from the places where they pass, each
// with the kernel's time stamp. It knows interfaces, not labs: lab/host says where
// the packets of a link or a node pass. It decodes no packet and compiles no filter
// itself. Start at Open.
//
// A packet: kernel (filter, time stamp, socket) → fill → head of its tap → oldest
// → file. One goroutine, that of Record; a packet waits in the kernel until it is
// the oldest of all.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Point is an interface, and what of the packets that pass it counts.
type Point struct {
	// Name in the file.
	Name string
	// Within runs a function in the network namespace of the interface, on the
	// function's own thread.
	Within func(f func() error) error
	// Device is the interface's name there.
	Device string
	// Outgoing packets are captured, else incoming ones.
	Outgoing bool
	// Source and Destination, where they are valid, narrow it to IPv4 packets
	// between two networks; then those of IPv6 between Source6 and Destination6 count,
	// too, where these are.
	Source, Destination   netip.Prefix
	Source6, Destination6 netip.Prefix
}

// Options of a capture.
type Options struct {
	// Keep is how many bytes of each packet are written, at most; 0 for all.
	Keep int
	// Filter is an expression of pcap-filter(7) for the packets that are wanted,
	// "" for all; the kernel copies no others. Names of hosts in it are those of the
	// first point.
	Filter string
	// Application names, within the file, the program that writes it.
	Application string
	// Alive is asked now and then; its error ends the capture. It may be nil.
	Alive func() error
}

// Total is what came of one point.
type Total struct {
	Name string `json:"name"`
	// Packets that were written, and those that the kernel had to drop since they
	// were not read in time.
	Packets uint64 `json:"packets"`
	Dropped uint64 `json:"dropped"`
}

const (
	// idlePause and busyPause are how long packets gather in the kernel after a round
	// that found none, and after one that did.
	idlePause, busyPause = 5 * time.Millisecond, time.Millisecond
	// settle is how long after its time stamp a packet surely can be read: up to
	// there, what was captured at several points is written in order of time.
	settle = 5 * time.Millisecond
	// aliveEvery is how often Alive is asked.
	aliveEvery = time.Second
)

// errNowhere says that a capture has no point.
var errNowhere = errors.New("capture at no interface")

// Capture listens at its points.
type Capture struct {
	taps []*tap
	o    Options
}

// Open begins to listen; Record writes what comes from here on. For a filter it
// starts tcpdump, which compiles it; the error then is ErrNoCompiler, or a
// *FilterError for a bad expression.
func Open(points []Point, o Options) (*Capture, error) {
	if len(points) == 0 {
		return nil, errNowhere
	}
	wanted, err := compile(o.Filter, points[0].Within)
	if err != nil {
		return nil, err
	}
	c := &Capture{o: o}
	for _, p := range points {
		t, err := open(p, o.Keep, wanted)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("capture at %s: %w", p.Name, err), c.Close())
		}
		c.taps = append(c.taps, t)
	}
	return c, nil
}

// Record writes packets to w until ctx ends, which is no error, or Alive says one,
// which comes with the totals. After every round of packets all is handed to w:
// whatever ends this process, what w has is a file that can be read but for its
// last block.
func (c *Capture) Record(ctx context.Context, w io.Writer) ([]Total, error) {
	f, err := newFile(w, c.taps, c.o)
	if err != nil {
		return nil, fmt.Errorf("write capture: %w", err)
	}
	ended, err := c.rounds(ctx, f)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	time.Sleep(settle)
	if _, err := c.round(f, now); err != nil {
		return nil, err
	}
	totals, err := f.finish(c.taps, now)
	if err != nil {
		return nil, fmt.Errorf("write capture: %w", err)
	}
	return totals, ended
}

// rounds go on until ctx ends or, as ended says, what is captured has.
func (c *Capture) rounds(ctx context.Context, f *file) (ended, err error) {
	pause := idlePause
	for asked := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(pause):
		}
		now := time.Now()
		n, err := c.round(f, now.Add(-settle))
		if err != nil {
			return nil, err
		}
		pause = idlePause
		if n > 0 {
			pause = busyPause
		}
		if c.o.Alive == nil || now.Sub(asked) < aliveEvery {
			continue
		}
		if ended := c.o.Alive(); ended != nil {
			return ended, nil
		}
		asked = now
	}
}

// round writes every packet up to a time, the oldest of all points first, and
// counts them. Later ones wait in the kernel, so the round ends.
func (c *Capture) round(f *file, until time.Time) (n int, err error) {
	for _, t := range c.taps {
		if err := t.fill(); err != nil {
			return n, err
		}
	}
	for t := c.oldest(until); t != nil; t = c.oldest(until) {
		if err := f.write(t); err != nil {
			return n, fmt.Errorf("write capture: %w", err)
		}
		if err := t.fill(); err != nil {
			return n, err
		}
		n++
	}
	if err := f.Flush(); err != nil {
		return n, fmt.Errorf("write capture: %w", err)
	}
	return n, nil
}

// oldest is the tap with the oldest packet that is not after a time; nil where
// there is none.
func (c *Capture) oldest(until time.Time) *tap {
	var oldest *tap
	for _, t := range c.taps {
		if t.full && !t.head.Timestamp.After(until) && (oldest == nil || t.head.Timestamp.Before(oldest.head.Timestamp)) {
			oldest = t
		}
	}
	return oldest
}

// Close ends the capture.
func (c *Capture) Close() error {
	var err error
	for _, t := range c.taps {
		err = errors.Join(err, t.close())
	}
	return err
}
