package native

import (
	"net"
	"sync"
	"time"
)

const (
	// gatherMost bounds what waits for the write before it: four records of TLS.
	gatherMost = 64 << 10
	// gatherClose is how long a connection that closes may still write.
	gatherClose = time.Second
)

// gather is a connection that many speak on: what they say while a write is under way goes
// by one more, and one record of TLS, not one for each. That a write failed is told to who
// writes next.
type gather struct {
	net.Conn
	mu     sync.Mutex
	change sync.Cond // of what follows
	said   []byte
	err    error
	closed bool
	done   chan struct{} // closed when nothing is written any more
}

func newGather(conn net.Conn) *gather {
	g := &gather{Conn: conn, done: make(chan struct{})}
	g.change.L = &g.mu
	go g.run()
	return g
}

// Write takes what is to be written; it waits for room only.
func (g *gather) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.said) >= gatherMost && g.err == nil && !g.closed {
		g.change.Wait()
	}
	if g.closed {
		return 0, net.ErrClosed
	}
	if g.err != nil {
		return 0, g.err
	}
	g.said = append(g.said, b...)
	g.change.Broadcast()
	return len(b), nil
}

// run writes what was said until that fails, or the connection is closed.
func (g *gather) run() {
	defer close(g.done)
	var out []byte
	for {
		g.mu.Lock()
		for len(g.said) == 0 && !g.closed {
			g.change.Wait()
		}
		out, g.said = g.said, out[:0]
		g.change.Broadcast()
		g.mu.Unlock()
		if len(out) == 0 {
			return
		}
		if _, err := g.Conn.Write(out); err != nil {
			g.mu.Lock()
			g.err = err
			g.change.Broadcast()
			g.mu.Unlock()
			return
		}
	}
}

// Close closes the connection when all is written, or in a second.
func (g *gather) Close() error {
	g.mu.Lock()
	g.closed = true
	g.change.Broadcast()
	g.mu.Unlock()
	_ = g.SetWriteDeadline(time.Now().Add(gatherClose)) // of one that has ended
	<-g.done
	return g.Conn.Close()
}
