package userspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/internal/socket"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

const patience = 20 * time.Second

// planeOf a chooser is a plane that is up before the endpoints.
func planeOf(t *testing.T, c *planetest.Chooser, config Config) (*Plane, string) {
	t.Helper()
	config.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	if config.Loops == 0 {
		config.Loops = 2
	}
	p, err := New(config, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, 0) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := c.InFlight(); n != 0 {
			t.Errorf("%d are in flight at the end", n)
		}
	})
	return p, p.Addresses()[0].String()
}

// Bytes come through unchanged, of any number, both ways at once, and the end of one side
// is passed on while the other still speaks.
func TestBytesComeThrough(t *testing.T) {
	c := planetest.New(conntest.Listen(t, conntest.Echo))
	p, at := planeOf(t, c, Config{})
	for _, size := range []int{0, 1, 1000, scratchSize, scratchSize + 1, 3 << 20, 20 << 20} {
		sent := make([]byte, size)
		_, _ = rand.Read(sent)
		conn := conntest.Dial(t, at)
		go func() {
			_, _ = conn.Write(sent)
			_ = conn.CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	conntest.Await(t, "all are closed", func() bool { return p.Counts().Open == 0 })
	n := p.Counts()
	if n.BytesIn != n.BytesOut || n.BytesIn != 1+1000+2*scratchSize+1+23<<20 {
		t.Errorf("counted %+v", n)
	}
	if n.Spliced == 0 {
		t.Error("nothing of 20 MB went by a pipe")
	}
	if c.Calls()[0].Target.String() != at {
		t.Errorf("the target was %s, not %s", c.Calls()[0].Target, at)
	}
}

// What an endpoint has said before it breaks off comes through, and then that it did.
func TestAnswerBeforeReset(t *testing.T) {
	_, at := planeOf(t, planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = s.Read(make([]byte, 1))
		_, _ = s.Write([]byte("answer"))
		_ = s.SetLinger(0)
		_ = s.Close()
	})), Config{})
	for range 100 {
		conn := conntest.Dial(t, at)
		_, _ = conn.Write([]byte("?"))
		if got, err := io.ReadAll(conn); string(got) != "answer" || !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%q, %v", got, err)
		}
		_ = conn.Close()
	}
}

// An endpoint that refuses an upload, says why and closes, is heard, and not blamed.
func TestAnswerBeforeAllIsRead(t *testing.T) {
	sent := make(chan struct{})
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = s.Read(make([]byte, 1))
		<-sent
		_, _ = s.Write([]byte("too much"))
		_ = s.Close()
	}))
	p, at := planeOf(t, c, Config{})
	const rounds = 10
	for range rounds {
		before := p.Counts().BytesIn
		conn := conntest.Dial(t, at)
		go func() { _, _ = conn.Write(make([]byte, 32<<20)) }()
		conntest.Await(t, "more has come than it reads", func() bool { return p.Counts().BytesIn > before+scratchSize })
		sent <- struct{}{}
		got := make([]byte, len("too much"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "too much" {
			t.Fatalf("%q, %v", got, err)
		}
		_ = conn.Close()
	}
	conntest.Await(t, "served", func() bool { return c.Count(dataplane.Served) == rounds && c.InFlight() == 0 })
}

// A client that has ended what it says, and is gone then, is not waited for.
func TestGoneAfterHalfClose(t *testing.T) {
	heard := make(chan struct{})
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = io.ReadAll(s)
		close(heard)
		<-t.Context().Done() // it computes
	}))
	p, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	_ = conn.CloseWrite()
	<-heard
	_ = conn.SetLinger(0)
	_ = conn.Close()
	conntest.Await(t, "it ends", func() bool { return p.Counts().Open == 0 && c.InFlight() == 0 })
}

// What is said urgently arrives among the rest, and what follows it, too.
func TestUrgent(t *testing.T) {
	_, at := planeOf(t, planetest.New(conntest.Listen(t, conntest.Echo)), Config{})
	conn := conntest.Dial(t, at)
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		text  string
		flags int
	}{{"interrupt", 0}, {"!", syscall.MSG_OOB}, {"abort", 0}} {
		if err := raw.Write(func(fd uintptr) bool {
			err = syscall.Sendto(int(fd), []byte(part.text), part.flags, nil)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len("interrupt!abort"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "interrupt!abort" {
		t.Errorf("%q, %v", got, err)
	}
}

// A client that says no more still gets all that its endpoint has to say.
func TestHalfClose(t *testing.T) {
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		all, _ := io.ReadAll(s)
		_, _ = s.Write(bytes.ToUpper(all))
		_ = s.Close()
	}))
	_, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	_ = conn.CloseWrite()
	if got, err := io.ReadAll(conn); string(got) != "QUESTION" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	conntest.Await(t, "served", func() bool { return c.Count(dataplane.Served) == 1 })
}

// A client that has all of an answer, and asks again, finds nothing of its own in flight.
func TestDoneWithTheAnswer(t *testing.T) {
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = io.ReadFull(s, make([]byte, len("question")))
		_, _ = s.Write([]byte("answer"))
		_ = s.Close()
	}))
	p, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	if got, err := io.ReadAll(conn); string(got) != "answer" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if n, open := c.Count(dataplane.Served), p.Counts().Open; n != 1 || open != 1 {
		t.Errorf("%d are served and %d open, before the client has closed", n, open)
	}
}

// Nor does one that has closed when it had its answer, though the endpoint is slow to.
func TestDoneWithTheClient(t *testing.T) {
	closes := make(chan struct{})
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = io.ReadFull(s, make([]byte, len("question")))
		_, _ = s.Write([]byte("answer"))
		<-closes
		_ = s.Close()
	}))
	p, at := planeOf(t, c, Config{Loops: 1})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	if _, err := io.ReadFull(conn, make([]byte, len("answer"))); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	conntest.Dial(t, at) // which is chosen for after that
	conntest.Await(t, "the next", func() bool { return c.Count(dataplane.Served) == 1 && c.InFlight() == 1 && p.Counts().Open == 2 })
	close(closes)
}

// A side that breaks off breaks off the other.
func TestReset(t *testing.T) {
	accepted := make(chan *net.TCPConn, 1)
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) { accepted <- s }))
	_, at := planeOf(t, c, Config{})

	conn := conntest.Dial(t, at)
	s := <-accepted
	_ = conn.SetLinger(0)
	_ = conn.Close()
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reset, the endpoint read %v", err)
	}
	conntest.Await(t, "the client is gone", func() bool { return c.Count(dataplane.Gone) == 1 })

	conn = conntest.Dial(t, at)
	s = <-accepted
	_, _ = conn.Write([]byte("question"))
	_, _ = s.Read(make([]byte, 100))
	_ = s.SetLinger(0)
	_ = s.Close()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the endpoint reset, the client read %v", err)
	}
	conntest.Await(t, "the endpoint has failed", func() bool { return c.Count(dataplane.Failed) == 1 })
}

// One who ends a connection without a word to who asked has failed.
func TestNoAnswer(t *testing.T) {
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = s.Read(make([]byte, 100))
		_ = s.Close()
	}))
	_, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	_, _ = io.ReadAll(conn)
	_ = conn.Close()
	conntest.Await(t, "failed", func() bool { return c.Count(dataplane.Failed) == 1 })
}

// One who says all and wants no answer has had none: that is no fault of the endpoint's.
func TestNoAnswerIsWanted(t *testing.T) {
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = io.Copy(io.Discard, s)
		_ = s.Close()
	}))
	_, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("a line of a log"))
	_ = conn.Close()
	conntest.Await(t, "gone", func() bool { return c.Count(dataplane.Gone) == 1 })
}

// An endpoint that does not take the connection is replaced by another, three at most.
func TestTriesOthers(t *testing.T) {
	c := planetest.New()
	c.ServeFirst(conntest.Closed(t), conntest.Closed(t), conntest.Listen(t, conntest.Echo))
	_, at := planeOf(t, c, Config{})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := c.Count(dataplane.Failed); n != 2 {
		t.Errorf("%d have failed", n)
	}
	c.Serve(conntest.Closed(t))
	conntest.Reset(t, at)
	if n := c.Count(dataplane.Failed); n != 5 {
		t.Errorf("%d have failed", n)
	}
}

func TestNobodyServes(t *testing.T) {
	c := planetest.New()
	p, at := planeOf(t, c, Config{})
	conntest.Reset(t, at)
	conntest.Await(t, "refused", func() bool { n := p.Counts(); return n.Refused == 1 && n.Open == 0 })
}

// An endpoint that never answers the call is given up after a time.
func TestConnectTimeout(t *testing.T) {
	silent := full(t)
	c := planetest.New(silent, conntest.Listen(t, conntest.Echo))
	p, at := planeOf(t, c, Config{ConnectTimeout: 50 * time.Millisecond})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := p.Counts(); n.Unreached != 1 {
		t.Errorf("%d were not reached", n.Unreached)
	}
}

// full is an address whose queue of connections is full, so that the kernel answers no
// call to it.
func full(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := socket.LocalOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		fill, err := call(at, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fill) })
	}
	return at.String()
}

// A client that leaves while its endpoint is called leaves nothing behind.
func TestClientLeavesEarly(t *testing.T) {
	c := planetest.New(full(t))
	p, at := planeOf(t, c, Config{ConnectTimeout: patience})
	conn := conntest.Dial(t, at)
	conntest.Await(t, "called", func() bool { return c.InFlight() == 1 })
	_ = conn.SetLinger(0)
	_ = conn.Close()
	conntest.Await(t, "gone", func() bool { return p.Counts().Open == 0 && c.Count(dataplane.Gone) == 1 })
}

// One who does not read is not sent to without end, and holds up nobody else.
func TestBackPressure(t *testing.T) {
	c := planetest.New(conntest.Listen(t, func(s *net.TCPConn) {
		_, _ = s.Read(make([]byte, 1))
		for {
			if _, err := s.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	p, at := planeOf(t, c, Config{Loops: 1})
	slow := conntest.Dial(t, at)
	_, _ = slow.Write([]byte("x"))
	settled := func() int64 {
		for n := int64(-1); ; {
			time.Sleep(200 * time.Millisecond)
			if m := p.Counts().BytesOut; m == n {
				return n
			} else { //nolint:revive // reads as it is meant
				n = m
			}
		}
	}
	if n := settled(); n == 0 || n > 64<<20 {
		t.Errorf("%d bytes were carried to one who reads none", n)
	}
	other := conntest.Dial(t, at)
	_, _ = other.Write([]byte("x"))
	if _, err := io.ReadFull(other, make([]byte, 4<<20)); err != nil {
		t.Errorf("another beside it: %v", err)
	}
}

// What is open when it is asked to end may go on for so long; nothing new is taken.
func TestDrain(t *testing.T) {
	c := planetest.New(conntest.Listen(t, conntest.Echo))
	p, err := New(Config{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Loops: 2}, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, patience) }()
	at := p.Addresses()[0].String()
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("x"))
	_, _ = io.ReadFull(conn, make([]byte, 1))
	cancel()
	conntest.Await(t, "no more is taken", func() bool {
		c, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	_, _ = conn.Write([]byte("y"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("what was open: %v", err)
	}
	_ = conn.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it goes on though nothing is open")
	}
}
