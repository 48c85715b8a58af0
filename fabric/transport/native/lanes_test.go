package native

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// lossyPool has a bundle, and a connection of its own whose peer is the other end.
func lossyPool() (p *Pool, c *connection, peer net.Conn) {
	near, peer := net.Pipe()
	p = NewPool("", nil, Options{Peer: Peer{Extra: new(Extra)}})
	p.bundle = newBundle(newBundleID(), lanesMost, new(Extra))
	c = newConnection(near, newBuffers())
	c.own = true
	p.all[c] = true
	return p, c, peer
}

// bundleFrame is what the peer is told of a bundle.
func bundleFrame(id bundleID, number uint32) []byte {
	b := append(make([]byte, headerBytes), id[:]...)
	b = binary.BigEndian.AppendUint32(b, number)
	header{kindBundle, bundleBytes, 0}.put(b)
	return b
}

// A peer that does not read holds up nobody who tells all of a bundle; when it reads it hears
// what was decided last.
func TestOfferWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, peer := lossyPool()
		heard := func(want ...[]byte) {
			t.Helper()
			for _, frame := range want {
				got := make([]byte, len(frame))
				if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, frame) {
					t.Errorf("heard % x, %v, want % x", got, err, frame)
				}
			}
			_ = peer.SetReadDeadline(time.Now().Add(time.Second))
			if n, _ := peer.Read(make([]byte, 1)); n > 0 {
				t.Error("heard more")
			}
			_ = peer.SetReadDeadline(time.Time{})
		}
		offered, back := bundleFrame(p.bundle.id, 1), bundleFrame(p.bundle.id, 0)
		p.offer(true)
		heard(offered)
		c.bundled.Load().active.Store(true) // as the peer answers
		p.offer(false)
		synctest.Wait() // for that to be written
		p.offer(true)
		p.offer(false)
		p.offer(true)
		heard(back, offered)
		p.offer(true)
		synctest.Wait()
		p.offer(true)
		p.offer(false) // which takes back what was not said yet
		heard(offered)
	})
}
