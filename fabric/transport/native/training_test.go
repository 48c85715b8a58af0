package native

import (
	"testing"
	"time"
)

// Training ends with the budget, and where it would cost others something.
func TestOver(t *testing.T) {
	const most = 1 << 20
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
		"a queue grows":          {with(func(l *lesson) { l.rtt = 26 * time.Millisecond }), true},
		"an unsteady short path": {with(func(l *lesson) { l.least, l.rtt = 2*time.Millisecond, 3*time.Millisecond }), false},
		"a short path":           {with(func(l *lesson) { l.least = 200 * time.Microsecond }), true},
		"one packet was lost":    {with(func(l *lesson) { l.retransmits = 1 }), false},
		"many were":              {with(func(l *lesson) { l.retransmits = 3 }), true},
		"few of many were":       {with(func(l *lesson) { l.retransmits, l.packets = 3, 4000 }), false},
	} {
		if got := c.at.over(most); got != c.want {
			t.Errorf("%s: over %t", name, got)
		}
	}
}
