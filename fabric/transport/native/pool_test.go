package native_test

import (
	"net"
	"testing"
	"time"
)

// A pool is settled when its connections know their paths, also those that were dialled
// since a stream could not wait.
func TestSettles(t *testing.T) {
	p := newPair(t, 1, to(listen(t, echo)))
	settles := func() bool {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if p.pool.Path().Settled {
				return true
			}
		}
		return false
	}
	if !settles() {
		t.Fatal("not settled at first")
	}
	var open []net.Conn
	for range 6 {
		p.pool.Unshare()
		conn := dial(t, p.front)
		_, _ = conn.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		conn.Close()
	}
	if !settles() {
		t.Error("not settled after streams that could not wait")
	}
}
