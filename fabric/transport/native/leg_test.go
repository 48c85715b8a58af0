package native

import (
	"testing"

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
		if _, err := far.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	told := func(what string, want uint32) {
		t.Helper()
		if got := l.since(); got.packets != want || got.lost != 0 {
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
}

// One of another kind than TCP tells nothing.
func TestLegOfAnotherKind(t *testing.T) {
	l := legOf(nil)
	l.hold(1)
	l.blame(true)
	l.blame(false)
	if got := l.since(); got != (count{}) {
		t.Errorf("told %+v", got)
	}
}
