package gateway

import (
	"bytes"
	"sync"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

const (
	// firstBytes is what a client's first words have at most, that go with what opens its
	// stream. What it says beyond follows.
	firstBytes = 4 << 10
	// firstPart of a round trip is waited for them, firstLeast at least and firstMost at
	// most: those whose service speaks first lose no more.
	firstPart  = 40
	firstLeast = 50 * time.Microsecond
	firstMost  = 500 * time.Microsecond
)

// firsts are buffers for first words. The zero firsts has none.
type firsts struct{ pool sync.Pool }

// read gives what a client says as it calls. Most say something at once: in one packet with
// what opens the stream it is there a packet earlier, and wakes each gateway once.
func (f *firsts) read(app transport.Conn, rtt time.Duration) []byte {
	wait := min(max(rtt/firstPart, firstLeast), firstMost)
	buf, ok := f.pool.Get().(*[firstBytes]byte)
	if !ok {
		buf = new([firstBytes]byte)
	}
	defer f.pool.Put(buf)
	_ = app.SetReadDeadline(time.Now().Add(wait)) // of one that is over the stream tells
	n, _ := app.Read(buf[:])
	_ = app.SetReadDeadline(time.Time{})
	return bytes.Clone(buf[:n])
}
