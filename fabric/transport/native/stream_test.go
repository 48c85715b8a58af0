package native

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// A burst begins, swells and, when it has said much or long, goes on as others do. A pause
// is one of who speaks, and begins another.
func TestBurst(t *testing.T) {
	const kilo = 1 << 10
	at := time.Unix(1e9, 0)
	var b burst
	for i, c := range []struct {
		after time.Duration
		bytes int
		want  phase
	}{
		{0, 60 * kilo, begins},
		{time.Millisecond, 60 * kilo, begins},
		{time.Millisecond, 60 * kilo, swells},
		{time.Second, 60 * kilo, begins},
		{100 * time.Millisecond, 60 * kilo, begins},
		{time.Millisecond, burstMost - 200*kilo, swells},
		{time.Millisecond, 60 * kilo, swells},
		{time.Millisecond, 60 * kilo, goesOn},
		{150 * time.Millisecond, kilo, goesOn},
		{time.Second, kilo, begins},
	} {
		at = at.Add(c.after)
		if got := b.add(c.bytes, at); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
		b.said(at)
	}
	var slow burst // each chunk waits for the path
	for i := range 25 {
		want := swells
		switch {
		case i < 2:
			want = begins
		case i > 20:
			want = goesOn
		}
		if got := slow.add(60*kilo, at); got != want {
			t.Errorf("slow %d: %d, want %d", i, got, want)
		}
		at = at.Add(100 * time.Millisecond)
		slow.said(at)
	}
}

// A queue is what stands beyond a path's own unevenness.
func TestCongested(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		rtt, least, varies time.Duration
		want               bool
	}{
		"idle":               {20 * ms, 20 * ms, ms / 10, false},
		"a full queue":       {66 * ms, 40 * ms, ms, true},
		"half of it":         {55 * ms, 40 * ms, ms / 2, true},
		"an uneven path":     {22 * ms, 14 * ms, 3 * ms, false},
		"one rack":           {ms / 5, ms / 10, ms / 20, false},
		"a short queue":      {42 * ms, 40 * ms, ms / 10, false},
		"uneven, and queued": {60 * ms, 20 * ms, 3 * ms, true},
	} {
		if got := congested(c.rtt, c.least, c.varies); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// written is a connection that keeps what each call has written.
type written struct {
	net.Conn
	calls [][]byte
}

func (w *written) Write(b []byte) (int, error) {
	w.calls = append(w.calls, bytes.Clone(b))
	return len(b), nil
}

// leaving is a peer that ends the connection as soon as it is told the end of a stream.
type leaving struct {
	net.Conn
	c   *connection
	err error // of what is written
}

func (l *leaving) Write(b []byte) (int, error) {
	l.c.end(io.EOF)
	return len(b), l.err
}

func (l *leaving) Close() error { return nil }

// A stream whose end is the last that its peer waited for is whole, whenever the peer ends the
// connection; not if that end was not told.
func TestEndsWithConnection(t *testing.T) {
	for _, want := range []error{nil, net.ErrClosed} {
		app, service := conntest.Pair(t)
		_ = service.CloseWrite()
		l := leaving{err: want}
		l.c = newConnection(&l, newBuffers())
		s, err := l.c.begin(transport.NewTraffic(time.Now()))
		if err != nil || !s.join(app) {
			t.Fatal(err)
		}
		s.peerFinished()
		s.pump()
		if got := s.wait(); !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// The word that all of a stream was passed on goes once, and never before the last of what the
// service says, however its end and the client's meet.
func TestDoneAfterLast(t *testing.T) {
	frame := func(k kind, n int) []byte {
		b := make([]byte, headerBytes)
		header{k, n, 1}.put(b)
		return b
	}
	data := append(frame(kindData, 6), "answer"...)
	apart := slices.Concat(data, frame(kindFIN, 0), frame(kindDone, 0))
	for name, c := range map[string]struct {
		ends func(s *stream)
		want []byte
	}{
		"the client first": {func(s *stream) { s.peerFinished(); s.pump() }, slices.Concat(data, frame(kindDone, 0))},
		"the client last":  {func(s *stream) { s.pump(); s.peerFinished() }, apart},
		"the client while the service's end waits": {func(s *stream) {
			s.c.writing.Lock()
			pumped := make(chan struct{})
			go func() { s.pump(); close(pumped) }()
			conntest.Await(t, "an end to tell", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.said })
			s.peerFinished()
			time.Sleep(50 * time.Millisecond)
			if s.c.telling.Load() != 0 {
				t.Error("the word goes first if it can")
			}
			s.c.writing.Unlock()
			<-pumped
		}, apart},
	} {
		app, service := conntest.Pair(t)
		if _, err := service.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		_ = service.CloseWrite()
		conntest.Await(t, "the end", legOf(app).closed)
		var w written
		of := newConnection(&w, newBuffers())
		of.open = func(*connection, *stream, transport.Request) {}
		s, err := of.begin(transport.NewTraffic(time.Now()))
		if err != nil || !s.join(app) {
			t.Fatal(err)
		}
		c.ends(s)
		conntest.Await(t, "the word", func() bool {
			of.writing.Lock()
			defer of.writing.Unlock()
			return bytes.Equal(bytes.Join(w.calls, nil), c.want)
		})
		if err := s.wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a service says before it ends goes with its end, but not where it might say more.
func TestSaysAll(t *testing.T) {
	for _, ends := range []bool{true, false} {
		app, service := conntest.Pair(t)
		if _, err := service.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if ends {
			_ = service.CloseWrite()
			conntest.Await(t, "the end", legOf(app).closed)
		} else {
			time.AfterFunc(50*time.Millisecond, func() { _ = service.CloseWrite() })
		}
		var w written
		c := newConnection(&w, newBuffers())
		s, err := c.begin(transport.NewTraffic(time.Now()))
		if err != nil || !s.join(app) {
			t.Fatal(err)
		}
		s.pump()
		frames := bytes.Join(w.calls, nil)
		want := slices.Concat([]byte{byte(kindData), 0, 0, 6, 0, 0, 0, 1}, []byte("answer"), []byte{byte(kindFIN), 0, 0, 0, 0, 0, 0, 1})
		if !bytes.Equal(frames, want) || (len(w.calls) == 1) != ends || s.traffic.Totals().ToPeerBytes != 6 {
			t.Errorf("ends at once: %v, written % x", ends, w.calls)
		}
	}
}

// An end that is a reset is none, and is told to who reads afterwards.
func TestResetIsNoEnd(t *testing.T) {
	app, service := conntest.Pair(t)
	transport.Reset(service)
	conntest.Await(t, "the reset", legOf(app).closed)
	if atEnd(app) {
		t.Error("a reset is an end")
	}
	if _, err := app.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("who reads then is told %v", err)
	}
}
