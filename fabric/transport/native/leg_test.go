package native

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
)

// What is sent is told once, and what is of one's own making never.
func TestBlame(t *testing.T) {
	near, far := conntest.Pair(t)
	l := legOf(near)
	say := func() {
		t.Helper()
		if _, err := near.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		l.wrote()
		if _, err := far.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	told := func(what string, want uint32) {
		t.Helper()
		if got := l.since(false); got.packets != want || got.lost != 0 {
			t.Errorf("%s: told %+v, want %d packets", what, got, want)
		}
	}
	say()
	told("at first", 1)
	told("again", 0)
	say()
	l.blame(true)
	say()
	told("of before", 1)
	say()
	told("own", 0)
	l.blame(false)
	told("own, when it is over", 0)
	say()
	told("after", 1)
	if l.seen.sent.Store(true); l.seen.rests() {
		t.Error("one on which was said something rests")
	}
	if !l.seen.rests() {
		t.Error("one on which nothing was said does not rest")
	}
}

// A connection has room for what TCP would send at once.
func TestNarrow(t *testing.T) {
	near, _ := conntest.Pair(t)
	l := legOf(near)
	if l.narrow(payloadMax) {
		t.Error("a connection on which was said nothing is narrow")
	}
	if err := near.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for all := make([]byte, 1<<20); ; { // until the peer, who does not read, takes no more
		if _, err := near.Write(all); errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !l.narrow(payloadMax) {
		t.Error("a connection on which bytes wait is not narrow")
	}
	const mss = 1000
	four := &unix.TCPInfo{Snd_cwnd: 4, Snd_mss: mss}
	if !room(four, 4*mss) || room(four, 4*mss+1) {
		t.Error("a window of four packets has room for other than four")
	}
}

// What no other packet tells of is sent again soon: the peer is a gateway, and acknowledges soon.
func TestTune(t *testing.T) {
	near, far := conntest.Pair(t)
	for _, end := range []leg{legOf(near), legOf(far)} {
		if err := end.tune(""); err != nil {
			t.Fatal(err)
		}
	}
	var has error
	_ = legOf(near).control(func(fd int) error {
		_, has = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MIN_US)
		return nil
	})
	if errors.Is(has, unix.ENOPROTOOPT) {
		t.Skip("this kernel has no TCP_RTO_MIN_US")
	}
	for range 40 { // TCP forgets slowly what it was told at first
		for _, say := range []struct{ from, to io.ReadWriter }{{near, far}, {far, near}} {
			if _, err := say.from.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := say.to.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	i := legOf(near).info()
	if got, usual := micros(i.Rto), micros(i.Rtt)+200*time.Millisecond; got >= usual {
		t.Errorf("sent again after %v, as usual", got)
	}
}

// One of another kind than TCP tells nothing.
func TestLegOfAnotherKind(t *testing.T) {
	l := legOf(nil)
	l.hold(1)
	l.blame(true)
	l.blame(false)
	if got := l.since(false); got != (count{}) {
		t.Errorf("told %+v", got)
	}
}

// What is lost while streams use the way is told two looks later, but not where a queue
// stands by then.
func TestWait(t *testing.T) {
	var told tally
	for i, c := range []struct {
		lost         uint32
		inUse, queue bool
		want         uint32
	}{
		{3, true, false, 0}, {4, true, false, 0}, {0, true, false, 3}, {0, true, false, 4},
		{5, true, false, 0}, {6, true, true, 0}, {0, true, false, 0}, {0, true, false, 0},
		{7, true, false, 0}, {1, false, false, 8}, {2, false, false, 2}, {9, false, true, 0},
	} {
		if got := told.wait(c.lost, c.inUse, c.queue); got != c.want {
			t.Errorf("%d: %d are lost, want %d", i, got, c.want)
		}
	}
}

// What a leg tells TCP when it rests is heard by nobody, and one that is closed tells nothing.
func TestRests(t *testing.T) {
	here, there := conntest.Pair(t)
	l := legOf(here)
	l.restsFor(4 * shortest)
	if _, err := here.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	l.wrote()
	b := make([]byte, 2)
	_ = there.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := io.ReadAtLeast(there, b, len(b)); n != 1 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
	here.Close()
	l.limited()
}
