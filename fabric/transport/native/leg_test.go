package native

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport/transporttest"
)

// What is sent is told once, and what is of one's own making never.
func TestBlame(t *testing.T) {
	near, far := transporttest.Pair(t)
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
	here, there := transporttest.Pair(t)
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
