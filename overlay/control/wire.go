package control

import "time"

// The layouts of overlay/dataplane/wire/control.h, in the machine's own byte order.
const (
	version      = 2
	addressesMax = 8
	entriesMax   = 256
	bodyBytes    = 32 + 8*entriesMax
	classes      = 8
	buckets      = 448
)

const (
	requestAttach = 1 + iota
	requestDetach
	requestRoute
	requestSchedule
	requestStatus
)

type request struct {
	Version, Type uint32
	Body          [bodyBytes]byte
}

type attach struct {
	Name      [64]byte
	Path      [104]byte
	MAC       [6]byte
	Addresses uint16
	Address   [addressesMax][16]byte
}

type route struct {
	Address, Node [16]byte
	MAC, NodeMAC  [6]byte
}

type entry struct {
	IntervalNs, Open uint32
}

type schedule struct {
	BaseNs, CycleNs, ExtensionNs int64
	Entries, _                   uint32
	Entry                        [entriesMax]entry
}

type histogram struct {
	Count [buckets]uint64
	MaxNs int64
}

type class struct {
	Fate                            [7]uint64
	Waiting, Misplaced, Unexplained uint64
}

type answer struct {
	Version                      uint32
	Error                        int32
	Reason                       [112]byte
	ClockNs, StartedNs, ChangeNs int64
	Clients, Sockets             uint32
	Malformed, Unrouted, Overrun uint64
	Class                        [classes]class
	Late, Gap                    histogram
}

// sub16 are the buckets of a power of two.
const sub16 = 16

// quantile returns the least value of the bucket in which a share of all values is reached.
func (h *histogram) quantile(share float64) time.Duration {
	var all, seen uint64
	for _, n := range h.Count {
		all += n
	}
	for i, n := range h.Count {
		seen += n
		if n > 0 && float64(seen) >= share*float64(all) {
			if i < sub16 {
				return time.Duration(i)
			}
			return time.Duration((sub16 + i%sub16) << (i/sub16 - 1))
		}
	}
	return 0
}
