package host

import (
	"errors"
	"testing"
	"time"
)

func TestParseSteal(t *testing.T) {
	const others = "\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	for _, c := range []struct {
		stat string
		want time.Duration
		err  error
	}{
		{"cpu  341216 20068 143444 1979943 13477 0 14624 1781 0 0" + others, 17810 * time.Millisecond, nil},
		{"cpu  1 2 3 4 5 6 7 0" + others, 0, nil},
		{"cpu  1 2 3 4 5 6 7" + others, 0, errNoSteal}, // Linux before 2.6.11
		{"intr 1 2 3 4 5 6 7 8" + others, 0, errNoSteal},
		{"cpu  1 2 3 4 5 6 7 -8" + others, 0, errNoSteal},
		{"", 0, errNoSteal},
	} {
		got, err := parseSteal(c.stat)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: got %s, %v, want %s, %v", c.stat, got, err, c.want, c.err)
		}
	}
	if now, err := Steal(); err != nil || now < 0 {
		t.Errorf("this machine: %s, %v", now, err)
	}
}
