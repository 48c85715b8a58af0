package impair

import "skerry.dev/skerry/internal/quantity"

// Counters is what one direction has done since it was set, in packets (or
// super-packets) and bytes.
type Counters struct {
	// Packets that entered the link, each once however many stages it has, and
	// their bytes as IP packets. All other counts are the sums of the stages.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Lost at random, as asked for.
	Lost uint64 `json:"lost"`
	// Overflowed the bounded queue before the rate.
	Overflowed uint64 `json:"overflowed"`
	// Late packets left more than Tolerance after their due time.
	Late uint64 `json:"late"`
	// LateMaxNs is the worst lateness, in nanoseconds.
	LateMaxNs int64 `json:"late_max_ns"`
	// Missed were dropped before the emulator could read them, or are copies of
	// duplicated packets that the kernel did not take.
	Missed uint64 `json:"missed"`
	// Duplicated, Corrupted and Reordered packets, as asked for, of those that were
	// not lost at random.
	Duplicated uint64 `json:"duplicated,omitempty"`
	Corrupted  uint64 `json:"corrupted,omitempty"`
	Reordered  uint64 `json:"reordered,omitempty"`
	// Came are the packets and copies that came to each further stage, the first of
	// these at 0; all are 0 where the back end cannot tell (netem). Packets that were
	// under way at a change come to the stages that there are by then.
	Came [StagesMax - 1]uint64 `json:"came,omitzero"`
}

// Minus is what was counted since an earlier time, with the worst lateness of
// all time. Where a count has gone backwards the link was set anew in between:
// forward is false, and the counts are those since then.
func (c Counters) Minus(earlier Counters) (since Counters, forward bool) {
	if c.Packets < earlier.Packets || c.Bytes < earlier.Bytes || c.Lost < earlier.Lost ||
		c.Overflowed < earlier.Overflowed || c.Late < earlier.Late || c.Missed < earlier.Missed ||
		c.Duplicated < earlier.Duplicated || c.Corrupted < earlier.Corrupted || c.Reordered < earlier.Reordered {
		return c, false
	}
	since = Counters{
		Packets: c.Packets - earlier.Packets, Bytes: c.Bytes - earlier.Bytes,
		Lost: c.Lost - earlier.Lost, Overflowed: c.Overflowed - earlier.Overflowed,
		Late: c.Late - earlier.Late, LateMaxNs: c.LateMaxNs,
		Missed:     c.Missed - earlier.Missed,
		Duplicated: c.Duplicated - earlier.Duplicated, Corrupted: c.Corrupted - earlier.Corrupted,
		Reordered: c.Reordered - earlier.Reordered,
	}
	for i, came := range c.Came {
		if came < earlier.Came[i] {
			return c, false
		}
		since.Came[i] = came - earlier.Came[i]
	}
	return since, true
}

// Gaps is when an emulator was kept from its packets since links were set.
type Gaps struct {
	// MaxNs is the longest of all, in nanoseconds.
	MaxNs int64 `json:"max_ns"`
	// Count of those longer than GapBound.
	Count uint64 `json:"count"`
}

// GapBound is how long an emulator may be kept from its packets before that
// counts: several times what it needs for all that one look finds.
const GapBound = quantity.Duration(1e6)

// Plus adds the counts of two times; the worst lateness is the worse one.
func (c Counters) Plus(o Counters) Counters {
	sum := Counters{
		Packets: c.Packets + o.Packets, Bytes: c.Bytes + o.Bytes,
		Lost: c.Lost + o.Lost, Overflowed: c.Overflowed + o.Overflowed,
		Late: c.Late + o.Late, LateMaxNs: max(c.LateMaxNs, o.LateMaxNs),
		Missed:     c.Missed + o.Missed,
		Duplicated: c.Duplicated + o.Duplicated, Corrupted: c.Corrupted + o.Corrupted,
		Reordered: c.Reordered + o.Reordered,
	}
	for i := range sum.Came {
		sum.Came[i] = c.Came[i] + o.Came[i]
	}
	return sum
}
