package native

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"skerry.dev/skerry/fabric/transport"
)

// tells gathers counts until they are worth a frame.
type tells struct {
	mu  sync.Mutex
	sum count
}

// tellLeast is how many packets are told of without a loss.
const tellLeast = 1000

// add takes more, and gives what is to be told now, if anything.
func (t *tells) add(more count) (now count, tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum = t.sum.plus(more)
	if t.sum.lost == 0 && t.sum.packets < tellLeast {
		return count{}, false
	}
	now, t.sum = t.sum, count{}
	return now, true
}

// tellLoss tells the peer, who may call for parity, what was lost of what this side has
// sent, on the connection and on the lanes beside it.
func (c *connection) tellLoss() {
	all := c.leg.since(true)
	if u := c.bundled.Load(); u != nil {
		for _, l := range u.live() {
			all = all.plus(l.leg.since(true))
		}
	}
	now, tell := c.untold.add(all)
	if !tell {
		return
	}
	var b [headerBytes + lossBytes]byte
	binary.BigEndian.PutUint32(b[headerBytes:], now.packets)
	binary.BigEndian.PutUint32(b[headerBytes+4:], now.lost)
	if err := c.out(kindLoss, 0, b[:]); err != nil {
		c.end(err)
	}
}

// lossTold takes what the peer tells, which is called.
func (c *connection) lossTold() error {
	var b [lossBytes]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return err
	}
	n := count{binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:])}
	switch {
	case c.open != nil:
		return fmt.Errorf("loss told by who calls: %w", transport.ErrProtocol)
	case n.lost > n.packets:
		return fmt.Errorf("%d packets lost of %d: %w", n.lost, n.packets, transport.ErrProtocol)
	case c.lost != nil:
		c.lost(n)
	}
	return nil
}
