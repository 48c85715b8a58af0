// Package schedule is the arithmetic of gate control lists (IEEE 802.1Q §8.6.8.4): what a
// list lets each traffic class send, whether all flows of a plan fit, and when a packet
// leaves. It is pure. The scheduler itself is C, in overlay/dataplane/sched; this says
// beforehand what that will do. Start at Read and Plan.Check.
package schedule

import (
	"math"
	"time"

	"skerry.dev/skerry/internal/quantity"
)

// Classes of traffic that 802.1Q has.
const Classes = 8

// Plan is a gate control list, the link that it is for and the flows that are to fit.
type Plan struct {
	// Link is the rate of the port, Guard the band before a gate shuts that is kept free
	// beside the frame itself, as ktsnd's --link-bps and --guard-ns.
	Link  quantity.Rate     `yaml:"link"`
	Guard quantity.Duration `yaml:"guard,omitempty"`
	// BaseTime is when a cycle begins, in ns of CLOCK_TAI.
	BaseTime int64             `yaml:"baseTime,omitempty"`
	Cycle    quantity.Duration `yaml:"cycle"`
	// Extension is how much the last cycle before another list may be lengthened.
	Extension quantity.Duration `yaml:"extension,omitempty"`
	Entries   []Entry           `yaml:"entries"`
	Flows     []Flow            `yaml:"flows,omitempty"`
}

// Entry has the gates of some classes open for a time, and all others shut.
type Entry struct {
	Open []int             `yaml:"open"`
	For  quantity.Duration `yaml:"for"`
}

// Flow sends a packet of Size bytes of payload every Period, in a class.
type Flow struct {
	Name   string            `yaml:"name"`
	Class  int               `yaml:"class"`
	Size   quantity.Size     `yaml:"size"`
	Period quantity.Duration `yaml:"period"`
}

// Bounds, those of overlay/dataplane/sched/gate.h and wire.
const (
	entriesMax = 256
	flowsMax   = 10_000
	cycleMax   = 10 * time.Second
	shortest   = time.Microsecond
	// longest is what a list's 32 bits of ns hold.
	longest    = time.Duration(math.MaxUint32)
	baseMax    = math.MaxInt64 / 4
	payloadMax = 1472
	guardMax   = 10 * time.Millisecond
)

// What a packet has on the wire beside its payload: UDP, IPv4, Ethernet with a tag of
// 802.1Q; a frame has frameMin bytes at least and gapBytes of preamble, check sequence
// and gap (802.3 §4.2.7). IPv6 has 20 bytes more.
const (
	headers  = 8 + 20 + 18
	frameMin = 60
	gapBytes = 24
)

// onWire is how long a packet of so many bytes of payload takes on the link, rounded up.
func (p Plan) onWire(payload quantity.Size) time.Duration {
	bytes := max(int64(payload)+headers, frameMin) + gapBytes
	return time.Duration((bytes*8*int64(time.Second) + int64(p.Link) - 1) / int64(p.Link))
}

// Window is a time, from the beginning of a cycle on, in which a gate is open. One that
// goes on over the end of the cycle ends later than that.
type Window struct {
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// Windows are those of a class, each as long as it is: one that is always open has one
// window of the whole cycle.
func (p Plan) Windows(class int) (all []Window) {
	at := time.Duration(0)
	for i, e := range p.Entries {
		end := min(at+e.For.Std(), p.Cycle.Std())
		if i == len(p.Entries)-1 {
			end = p.Cycle.Std() // the last entry holds until the cycle ends
		}
		if at >= end {
			break
		}
		switch open := e.opens(class); {
		case open && len(all) > 0 && all[len(all)-1].End == at:
			all[len(all)-1].End = end
		case open:
			all = append(all, Window{at, end})
		}
		at = end
	}
	if last := len(all) - 1; last > 0 && all[0].Start == 0 && all[last].End == p.Cycle.Std() {
		all[last].End += all[0].End
		all = all[1:]
	}
	return all
}

// opens reports whether a class may send.
func (e Entry) opens(class int) bool {
	for _, c := range e.Open {
		if c == class {
			return true
		}
	}
	return false
}

// always reports a window that never ends.
func (p Plan) always(w Window) bool { return w.End-w.Start == p.Cycle.Std() }

// usable is how much of a window frames may fill.
func (p Plan) usable(w Window) time.Duration {
	if p.always(w) {
		return p.Cycle.Std()
	}
	return max(w.End-w.Start-p.Guard.Std(), 0)
}
