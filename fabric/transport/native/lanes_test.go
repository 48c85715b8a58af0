package native

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/internal/conntest"
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

// A lane whose bundle ends while it is dialled ends, and no more are dialled.
func TestLaneOfBundleThatEnds(t *testing.T) {
	stores := identitytest.Stores(t, "c1", "c2")
	l, err := tls.Listen("tcp", "127.0.0.1:0", stores["c1"].Server(ProtocolLane))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := NewPool(l.Addr().String(), stores["c2"].Client("c1", ProtocolLane), Options{Peer: Peer{Extra: new(Extra)}})
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	ended := make(chan error, 2)
	go conntest.Accept(l, func(conn net.Conn) {
		defer conn.Close()
		b.fail(ErrClosed)
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	})
	if err := p.lane(t.Context(), b, 0); err != nil {
		t.Error(err)
	}
	if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the lane stays")
	}
	if err := p.lane(t.Context(), b, 1); err != nil || len(ended) > 0 || b.lanes[1].Load() != nil {
		t.Errorf("another is dialled, %v", err)
	}
}

// A lane that no bundle can have makes none, and one of a bundle that is over ends.
func TestServeLaneOfNone(t *testing.T) {
	s := NewServer(nil, "", func(string) Peer { return Peer{Extra: new(Extra)} })
	peer := identity.Name{Fabric: "f", Cluster: "c2", Gateway: "g1"}
	over := newBundle(bundleID{1}, dataLeast, new(Extra))
	over.fail(ErrClosed)
	for name, c := range map[string]struct {
		id bundleID
		i  byte
	}{"lane 7 of 5": {bundleID{2}, 7}, "of a bundle that is over": {over.id, 1}} {
		s.bundles = map[bundleKey]*bundle{{peer, over.id}: over}
		near, far := conntest.Pair(t)
		if _, err := far.Write(append(c.id[:], c.i, dataLeast)); err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.ServeLane(near, peer) }()
		select {
		case err := <-served:
			if _, has := s.bundles[bundleKey{peer, c.id}]; err == nil || has {
				t.Errorf("%s: %v, kept %t", name, err, has)
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s: it stays", name)
			far.Close()
		}
	}
}
