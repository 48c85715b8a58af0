package native

import (
	"testing"
	"time"
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
