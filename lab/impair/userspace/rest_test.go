package userspace

import (
	"testing"
	"time"
)

// However a thread waits, of no second does it keep its core for as long as the kernel
// allows.
func TestRest(t *testing.T) {
	const allowed = 950 * time.Millisecond
	for name, c := range map[string]struct{ worked, waited time.Duration }{
		"busy":           {30 * time.Microsecond, 0},
		"waits that end": {82 * time.Microsecond, 2 * time.Microsecond},
		"long turns":     {300 * time.Microsecond, 10 * time.Microsecond},
	} {
		var w work
		w.rest(0, int64(5*time.Second)) // of which little counts
		now, busy := w.rested, time.Duration(0)
		for end := now + int64(time.Second); now < end; {
			now, busy = now+int64(c.worked), busy+c.worked
			pause := c.waited
			if w.due(now) {
				pause = restFor
			}
			if pause > 0 {
				w.rest(now, now+int64(pause))
				now += int64(pause)
			}
		}
		if busy > allowed {
			t.Errorf("%s: it works for %s of a second", name, busy)
		}
	}
}
