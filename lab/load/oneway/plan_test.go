package oneway

import (
	"testing"
	"time"
)

func TestOffset(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		talker, talkers int
		cycle, want     time.Duration
	}{
		{0, 1, time.Millisecond, 0},
		{7, 8, time.Millisecond, 875 * us},
		{3, 4, time.Millisecond, 375 * us},
		{79, 100, 10 * time.Millisecond, 9875 * us},
		{80, 100, 10 * time.Millisecond, 62500}, // the second of two in the first slot
		{99, 100, 10 * time.Millisecond, 19*125*us + 62500},
		{2, 4, 100 * us, 50 * us}, // a cycle that is shorter than a slot
	} {
		if got := Offset(c.talker, c.talkers, c.cycle); got != c.want {
			t.Errorf("talker %d of %d in %s: %s, want %s", c.talker, c.talkers, c.cycle, got, c.want)
		}
	}
}

// A window of its class is open when a talker's packets are planned, whichever it is.
func TestTalkersPlanWithinTheWindowsOfTheirClasses(t *testing.T) {
	for talker := range 100 {
		into := Offset(talker, 100, 10*time.Millisecond) % time.Millisecond
		if open := 7 - int(into/(125*time.Microsecond)); open != Priority(talker) {
			t.Errorf("talker %d of class %d plans for the window of class %d", talker, Priority(talker), open)
		}
	}
}
