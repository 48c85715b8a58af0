package oneway

import "time"

const (
	// classes of traffic (IEEE 802.1Q): talkers take turns in them.
	classes = 8
	// slot is how far from one another talkers plan their packets: what the windows of
	// systems/ktsn-preload give to a class, one after the other.
	slot = time.Millisecond / classes
)

// Priority is that of a talker, counted from 0: the first has the highest class's.
func Priority(talker int) int { return classes - 1 - talker%classes }

// Offset is when in its cycle a talker of so many plans its packets: each has the slot after
// that of the one before it; where there are more than slots, as many share each of them.
func Offset(talker, talkers int, cycle time.Duration) time.Duration {
	each := min(slot, cycle)
	slots := int(cycle / each)
	laps := (talkers + slots - 1) / slots
	return time.Duration(talker%slots)*each + time.Duration(talker/slots)*each/time.Duration(laps)
}
