package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// copyHeader is that of a copy of so many bytes.
func copyHeader(stream uint32, what, size int) shard {
	return shard{block: block{1, stream}, size: size, shape: shape{data: 1}, index: what}
}

// called is a connection that a peer has called, whose streams lead to a socket each, and
// the peer's end of it. What those sockets are given is heard at the others.
func called(t *testing.T) (c *connection, peer net.Conn, opened chan *net.TCPConn) {
	t.Helper()
	near, peer := net.Pipe()
	c = newConnection(near, newBuffers())
	opened = make(chan *net.TCPConn, 2)
	c.open = func(_ *connection, s *stream, _ transport.Request) {
		app, service := conntest.Pair(t)
		s.traffic = new(transport.Traffic)
		s.join(app)
		opened <- service
	}
	go func() { _ = c.serve() }()
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	t.Cleanup(func() { _ = peer.Close() })
	return c, peer, opened
}

// data is a copy of bytes at an offset.
func data(offset uint64, bytes string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, offset), bytes...)
}

// say writes frames.
func say(t *testing.T, to io.Writer, frames ...[]byte) {
	t.Helper()
	for _, f := range frames {
		if _, err := to.Write(f); err != nil {
			t.Error(err)
		}
	}
}

// hears holds what a socket is given next, and nothing more until then.
func hears(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("heard %q, %v, want %q", got, err, want)
	}
}

// A copy is passed on before its frame, whose bytes are then skipped; one that is not the
// next of its stream, or comes after, is dropped.
func TestCopies(t *testing.T) {
	c, peer, opened := called(t)
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	b.admit(c, 1)
	take := func(stream uint32, what int, body []byte) {
		t.Helper()
		if err := b.copied(copyHeader(stream, what, len(body)), body); err != nil {
			t.Error(err)
		}
	}
	open, second := openFrame(t, 1, asked, "first"), openFrame(t, 2, asked, "second")
	take(2, copyOfOpen, second[headerBytes:]) // not the next
	take(1, copyOfOpen, open[headerBytes:])
	take(1, copyOfOpen, open[headerBytes:])
	service := <-opened
	hears(t, service, "first")
	idle(t, c, 1)
	take(1, copyOfData, data(10, "later"))
	idle(t, c, 1)
	take(1, copyOfData, data(5, " then"))
	hears(t, service, " then")
	idle(t, c, 1)
	say(t, peer, open, frame(kindData, 1, []byte(" then later")...))
	hears(t, service, " later")
	take(1, copyOfData, data(5, " then"))
	idle(t, c, 1)
	say(t, peer, frame(kindData, 1, '.'), frame(kindFIN, 1))
	if rest, err := io.ReadAll(service); err != nil || string(rest) != "." {
		t.Errorf("at the end comes %q, %v", rest, err)
	}
	// By its frame first.
	say(t, peer, second)
	service = <-opened
	hears(t, service, "second")
	take(2, copyOfOpen, second[headerBytes:])
	say(t, peer, frame(kindData, 2, '!'))
	hears(t, service, "!")
	if len(opened) > 0 {
		t.Error("a copy has opened its stream again")
	}
	b.forget(1)
	take(3, copyOfOpen, open[headerBytes:])
}

// denying is a connection that a peer has called, whose streams are all refused, how many
// have begun, and the peer's end of it.
func denying(t *testing.T) (c *connection, begun *atomic.Int32, peer net.Conn) {
	t.Helper()
	near, peer := net.Pipe()
	c, begun = newConnection(near, newBuffers()), new(atomic.Int32)
	c.open = func(_ *connection, s *stream, _ transport.Request) {
		begun.Add(1)
		s.refuse(transport.Denied)
	}
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	t.Cleanup(func() { _ = peer.Close() })
	return c, begun, peer
}

// An open frame that comes in the moment in which its copy does opens the stream once.
func TestCopyBesideItsFrame(t *testing.T) {
	c, begun, peer := denying(t)
	ended := make(chan error, 1)
	go func() { ended <- c.serve() }()
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	b.admit(c, 1)
	const streams = 5000
	for id := uint32(1); id <= streams; id++ {
		open := openFrame(t, id, asked, "")
		last := len(open) - 1
		say(t, peer, open[:last])
		var both sync.WaitGroup
		both.Go(func() { say(t, peer, open[last:]) })
		both.Go(func() {
			if err := b.copied(copyHeader(id, copyOfOpen, len(open)-headerBytes), open[headerBytes:]); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		say(t, peer, frame(kindPing, 0)) // which is read when the open frame is done with
		if len(ended) > 0 {
			t.Fatalf("stream %d: %v", id, <-ended)
		}
	}
	if n := begun.Load(); n != streams {
		t.Errorf("%d streams have begun of %d", n, streams)
	}
}

// A stream that was opened by a copy may be refused before its frame comes, and the copy of
// the next come before that.
func TestCopyBeforeAnEarlierFrame(t *testing.T) {
	c, begun, peer := denying(t)
	go func() { _ = c.serve() }()
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	b.admit(c, 1)
	for id := uint32(1); id <= 2; id++ {
		body := openFrame(t, id, asked, "x")[headerBytes:]
		if err := b.copied(copyHeader(id, copyOfOpen, len(body)), body); err != nil {
			t.Error(err)
		}
	}
	say(t, peer, openFrame(t, 1, asked, "x"), openFrame(t, 2, asked, "x"), frame(kindPing, 0))
	if n := begun.Load(); n != 2 {
		t.Errorf("%d streams have begun, want 2", n)
	}
	if !c.idle() {
		t.Error("the connection has ended, or carries something")
	}
}

// idle waits until no copy of a stream is on its way.
func idle(t *testing.T, c *connection, id uint32) {
	t.Helper()
	conntest.Await(t, "no copy on its way", func() bool { return !c.stream(id).in.copying.Load() })
}

// What a peer must not say by a copy is a breach.
func TestCopiesRefused(t *testing.T) {
	c, _, _ := called(t)
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	b.admit(c, 1)
	near, _ := net.Pipe()
	caller := newConnection(near, newBuffers())
	b.admit(caller, 2)
	ofCaller := copyHeader(1, copyOfOpen, 4)
	ofCaller.connection = 2
	for name, refused := range map[string]error{
		"no message":               b.copied(copyHeader(1, copyOfOpen, 3), []byte{0, 9, 1}),
		"half a number":            b.copied(copyHeader(1, copyOfOpen, 1), []byte{0}),
		"no bytes":                 b.copied(copyHeader(1, copyOfData, offsetBytes), make([]byte, offsetBytes)),
		"opened by who was called": b.copied(ofCaller, make([]byte, 4)),
	} {
		if !errors.Is(refused, transport.ErrProtocol) {
			t.Errorf("%s: %v", name, refused)
		}
	}
}

// Any body of a copy is passed on, dropped or a breach, and opens one stream at most.
func FuzzCopied(f *testing.F) {
	f.Add(byte(copyOfOpen), uint32(1), []byte{0, 0})
	f.Add(byte(copyOfData), uint32(1), []byte("\x00\x00\x00\x00\x00\x00\x00\x05rest"))
	f.Fuzz(func(t *testing.T, what byte, id uint32, body []byte) {
		near, peer := net.Pipe()
		defer peer.Close()
		c := newConnection(near, newBuffers())
		streams := 0
		c.open = func(_ *connection, s *stream, _ transport.Request) {
			streams++
			s.fail(fmt.Errorf("no %s here", "service"))
		}
		b := newBundle(newBundleID(), lanesMost, new(Extra))
		b.admit(c, 1)
		if len(body) == 0 || len(body) > copyMost {
			return
		}
		err := b.copied(copyHeader(id, int(what)%(copyOfOpen+1), len(body)), body)
		if err != nil && !errors.Is(err, transport.ErrProtocol) || streams > 1 {
			t.Errorf("%d streams, %v", streams, err)
		}
	})
}
