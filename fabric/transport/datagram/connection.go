package datagram

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/transport"
)

// connection carries flows between two gateways.
//
// A datagram of a client: its socket → Flow.Send → queue → send → QUIC → the peer's
// receive → assembler, if it came in parts → the flow's receive → the service's socket;
// and back the same way. Only send waits, for QUIC to have room: what comes meanwhile
// stands in the queue, and the oldest of it gives way.
type connection struct {
	conn  *quic.Conn
	queue *queue
	drops *Drops
	// heard is when something last came, in Unix nanoseconds; leaving says that the peer
	// takes no more flows.
	heard   atomic.Int64
	leaving atomic.Bool

	mu    sync.Mutex
	flows map[uint64]*Flow
	// idle are the flows, the one that has said nothing for the longest first.
	idle      list.List
	idleAfter time.Duration
	// newest is the number of the newest flow, -1 before the first.
	newest int64
	early  early
}

func newConnection(conn *quic.Conn, drops *Drops) *connection {
	c := &connection{conn: conn, queue: newQueue(), drops: drops, flows: map[uint64]*Flow{}, idleAfter: idleAfter, newest: -1}
	c.heard.Store(time.Now().UnixNano())
	return c
}

// serve carries datagrams until the connection ends, and says why it did.
func (c *connection) serve() error {
	var both sync.WaitGroup
	both.Go(c.send)
	both.Go(c.look)
	err := c.receive()
	code := codeEnded
	if errors.Is(err, transport.ErrProtocol) {
		code = codeBreach
	}
	_ = c.conn.CloseWithError(code, "") // it is over either way
	both.Wait()
	for _, f := range c.all() {
		f.End(Over)
	}
	return err
}

// send passes on what waits.
func (c *connection) send() {
	var buf []byte
	var number uint16
	for {
		l, datagram := c.queue.next()
		if l == nil {
			select {
			case <-c.queue.ready:
				continue
			case <-c.conn.Context().Done():
				return
			}
		}
		buf = appendPacket(buf[:0], packet{flow: l.flow, payload: datagram})
		err := c.conn.SendDatagram(buf)
		if long, ok := errors.AsType[*quic.DatagramTooLargeError](err); ok {
			number++
			c.sendParts(split(l.flow, number, datagram, int(long.MaxDatagramPayloadSize)))
		}
	}
}

// sendParts sends a datagram that is too long for the path at once.
func (c *connection) sendParts(parts [][]byte) {
	if len(parts) == 0 {
		c.drops.Long.Add(1)
	}
	for _, part := range parts {
		if err := c.conn.SendDatagram(part); err != nil {
			return // the connection is over
		}
	}
}

// receive passes on what the peer says.
func (c *connection) receive() error {
	var parts assembler
	for {
		b, err := c.conn.ReceiveDatagram(c.conn.Context())
		if err != nil {
			return context.Cause(c.conn.Context())
		}
		p, err := parsePacket(b)
		if err != nil {
			return err
		}
		if p.parts > 0 {
			var dropped int
			p.payload, dropped = parts.add(p, time.Now())
			c.drops.Parts.Add(uint64(dropped))
			if p.payload == nil {
				continue
			}
		}
		c.deliver(p.flow, p.payload, time.Now())
	}
}

// deliver gives a datagram to its flow; one that comes before who takes it waits for a
// moment.
func (c *connection) deliver(flow uint64, datagram []byte, now time.Time) {
	c.mu.Lock()
	var receive func([]byte)
	f := c.flows[flow]
	switch {
	case f == nil && int64(flow) <= c.newest:
		c.drops.Late.Add(1)
	case f == nil || f.receive == nil:
		c.drops.Early.Add(uint64(c.early.add(flow, datagram, now)))
	default:
		c.touchLocked(f, now)
		receive = f.receive
	}
	c.mu.Unlock()
	if receive != nil {
		receive(datagram)
	}
}

// add takes a flow in. Where there are too many, the one that was idle for the longest
// gives way.
func (c *connection) add(f *Flow) {
	c.mu.Lock()
	var oldest *Flow
	if len(c.flows) >= flowsMax {
		oldest = c.idle.Front().Value.(*Flow)
		c.removeLocked(oldest)
	}
	f.c, f.last = c, time.Now()
	c.flows[f.lane.flow] = f
	f.element = c.idle.PushBack(f)
	c.newest = max(c.newest, int64(f.lane.flow))
	c.mu.Unlock()
	if oldest != nil {
		go oldest.tell(transport.Overloaded, Over) // whoever opens a flow may hold locks
	}
}

// attach says who takes what the peer says, beginning with what it has said.
func (c *connection) attach(f *Flow, receive func([]byte)) {
	c.mu.Lock()
	f.receive = receive
	waited, dropped := c.early.take(f.lane.flow, time.Now())
	c.mu.Unlock()
	c.drops.Early.Add(uint64(dropped))
	for _, datagram := range waited {
		receive(datagram)
	}
}

// remove forgets a flow. It says whether that was not done before.
func (c *connection) remove(f *Flow) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.over {
		return false
	}
	c.removeLocked(f)
	return true
}

func (c *connection) removeLocked(f *Flow) {
	f.over = true
	delete(c.flows, f.lane.flow)
	c.idle.Remove(f.element)
}

// touch notes that a flow is used. It says whether it may be.
func (c *connection) touch(f *Flow) bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.over {
		c.touchLocked(f, now)
	}
	return !f.over
}

func (c *connection) touchLocked(f *Flow, now time.Time) {
	f.last = now
	c.idle.MoveToBack(f.element)
}

// all are the flows that are open.
func (c *connection) all() (flows []*Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flows {
		flows = append(flows, f)
	}
	return flows
}

// count is how many flows are open.
func (c *connection) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.flows)
}

// look ends flows that are idle, and notes whether the peer is still heard.
func (c *connection) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var received uint64
	for {
		select {
		case <-c.conn.Context().Done():
			return
		case now := <-tick.C:
			if n := c.conn.ConnectionStats().PacketsReceived; n != received {
				received = n
				c.heard.Store(now.UnixNano())
			}
			for _, f := range c.idleSince(now) {
				f.End(Over)
			}
		}
	}
}

// idleSince are the flows that have been idle for too long.
func (c *connection) idleSince(now time.Time) (flows []*Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.idle.Front(); e != nil && now.Sub(e.Value.(*Flow).last) > c.idleAfter; e = e.Next() {
		flows = append(flows, e.Value.(*Flow))
	}
	return flows
}

// hurry has flows end that are idle for a short while: one of the gateways ends.
func (c *connection) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idleAfter = leavingIdleAfter
}

// ready says whether new flows should be opened on it.
func (c *connection) ready(now time.Time) bool {
	return c.usable() && now.UnixNano()-c.heard.Load() < int64(quietAfter)
}

// usable says whether they can be.
func (c *connection) usable() bool { return !c.leaving.Load() && c.conn.Context().Err() == nil }

// recheck ends the connection when its peer is not to be trusted any more.
func (c *connection) recheck(trusted func(tls.ConnectionState) error) error {
	err := trusted(c.conn.ConnectionState().TLS)
	if err != nil {
		_ = c.conn.CloseWithError(quic.ApplicationErrorCode(transport.Denied), "") // it is over either way
		return fmt.Errorf("at %s: %w", c.conn.RemoteAddr(), err)
	}
	return nil
}
