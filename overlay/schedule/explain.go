package schedule

import (
	"fmt"
	"time"

	"skerry.dev/skerry/internal/quantity"
)

// Departure is when a packet leaves that nothing else is in the way of.
type Departure struct {
	// AtNs is when its frame begins to leave, in ns of CLOCK_TAI.
	AtNs int64 `json:"at_ns"`
	// Window of its class that it leaves in, from the beginning of the cycle on.
	Window Window `json:"window"`
	// Takes is how long the frame takes on the link.
	Takes time.Duration `json:"takes_ns"`
	// Waits is how long after its transmission time it leaves, and Why.
	Waits time.Duration `json:"waits_ns"`
	Why   string        `json:"why"`
}

// Explain says when a packet of so many bytes of payload leaves whose transmission time,
// of CLOCK_TAI, is given. The error is a *Refusal where none of its windows has room.
func (p Plan) Explain(class int, payload quantity.Size, txtimeNs int64) (Departure, error) {
	d := Departure{Takes: p.onWire(payload)}
	cycle := p.Cycle.Std()
	into := time.Duration((txtimeNs-p.BaseTime)%int64(cycle)+int64(cycle)) % cycle
	// A window may have begun in the cycle before, and the next one in that after.
	for turn := -cycle; turn <= cycle; turn += cycle {
		for _, w := range p.Windows(class) {
			begin, end := w.Start+turn, w.End+turn-p.Guard.Std()
			if p.always(w) {
				begin, end = into, into+d.Takes
			}
			leaves := max(into, begin)
			if leaves+d.Takes > end {
				if into >= begin && into < w.End+turn {
					d.Why = fmt.Sprintf("the gate is open and shuts in %s, too soon for a frame of %s and the guard band of %s; ", w.End+turn-into, d.Takes, p.Guard)
				}
				continue
			}
			d.AtNs, d.Window, d.Waits = txtimeNs+int64(leaves-into), w, leaves-into
			d.Why = reason(d.Why, d.Waits)
			return d, nil
		}
	}
	c := p.class(class)
	c.Frame, c.Lacks = d.Takes, d.Takes-c.Longest
	return d, &Refusal{c}
}

// reason is why a packet waits for so long, behind what is known already.
func reason(known string, waits time.Duration) string {
	switch {
	case waits == 0:
		return "its gate is open at its transmission time"
	case known == "":
		return "its gate is shut at its transmission time, and opens " + waits.String() + " later"
	}
	return known + "it opens again " + waits.String() + " later"
}
