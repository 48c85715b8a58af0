package native

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a connection whose writes take a while, and are noted.
type counted struct {
	net.Conn
	writes chan []byte // with room for those that succeed
}

func (c *counted) Write(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	select {
	case c.writes <- bytes.Clone(b):
		return len(b), nil
	default:
		return 0, io.ErrClosedPipe
	}
}

func (c *counted) SetWriteDeadline(time.Time) error { return nil }
func (c *counted) Close() error                     { return nil }

// What is said while a write is under way goes by the next one, in order; what was said
// before the connection is closed is written.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &counted{writes: make(chan []byte, 8)}
		g := newGather(conn)
		say := func(b []byte) {
			if _, err := g.Write(b); err != nil {
				t.Error(err)
			}
		}
		say([]byte("a"))
		synctest.Wait() // it is under way
		for _, more := range []string{"b", "cc", "d"} {
			say([]byte(more))
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"a", "bccd"} {
			if got := string(<-conn.writes); got != want {
				t.Errorf("a write of %q, not of %q", got, want)
			}
		}
		if _, err := g.Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("written after it was closed: %v", err)
		}
	})
}

// Who says more than there is room for waits; who says something after a write has failed
// is told.
func TestGatherBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &counted{writes: make(chan []byte, 4)}
		g := newGather(conn)
		full := make([]byte, gatherMost)
		began := time.Now()
		for range 4 { // one is under way, one waits, and for the others there is no room
			if _, err := g.Write(full); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took < 2*time.Millisecond {
			t.Errorf("%d bytes are taken in %v", 4*gatherMost, took)
		}
		time.Sleep(time.Second)
		_, _ = g.Write(full) // which fails
		time.Sleep(time.Second)
		if _, err := g.Write(full); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("written after a write failed: %v", err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}
