package native

import (
	"testing"
	"time"
)

// Training ends with the budget, and where it would cost others something.
func TestOver(t *testing.T) {
	const most = 1 << 20
	now := time.Unix(1000, 0)
	fine := lesson{sent: 1 << 19, rtt: 21 * time.Millisecond, least: 20 * time.Millisecond, packets: 400}
	with := func(change func(*lesson)) lesson {
		l := fine
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		at   lesson
		want bool
	}{
		"fine":                   {fine, false},
		"the budget is spent":    {with(func(l *lesson) { l.sent = most }), true},
		"a queue stands":         {with(func(l *lesson) { queue(l, now.Add(-60*time.Millisecond), 26, 20) }), true},
		"a queue for a moment":   {with(func(l *lesson) { queue(l, now.Add(-40*time.Millisecond), 26, 20) }), false},
		"a queue that has gone":  {with(func(l *lesson) { queue(l, now.Add(-60*time.Millisecond), 26, 20); queue(l, now, 21, 20) }), false},
		"an unsteady short path": {with(func(l *lesson) { queue(l, now.Add(-time.Second), 3, 2) }), false},
		"a short path":           {with(func(l *lesson) { l.least = 200 * time.Microsecond }), true},
		"one packet was lost":    {with(func(l *lesson) { l.retransmits = 1 }), false},
		"many were":              {with(func(l *lesson) { l.retransmits = 3 }), true},
		"few of many were":       {with(func(l *lesson) { l.retransmits, l.packets = 3, 4000 }), false},
	} {
		if got := c.at.over(now, most); got != c.want {
			t.Errorf("%s: over %t", name, got)
		}
	}
}

// queue has a lesson see round trips in ms.
func queue(l *lesson, at time.Time, rtt, least int) {
	l.see(at, time.Duration(rtt)*time.Millisecond, time.Duration(least)*time.Millisecond)
}
