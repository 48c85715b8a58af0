package native

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bbr takes more than its part of a queue that is short, and fills it until the others
// lose packets (Ware et al., IMC 2019). So a stream that lasts goes on by cubic where it
// meets some.
const bbr, cubic = "bbr", "cubic"

// neighbour is how a connection treats others on its path.
type neighbour struct {
	looked atomic.Int64 // ns of Unix time
	yields atomic.Bool
	sent   count // by the last look
}

// share has a connection go on as others do, if it meets some: where its stream lasts, or much
// is lost. It takes no other stream then, for it has forgotten its path.
func (c *connection) share(now time.Time, lasts bool) {
	const look = 100 * time.Millisecond
	before := c.looked.Load()
	if c.leg.tcp == nil || c.yields.Load() || now.UnixNano()-before < int64(look) || !c.looked.CompareAndSwap(before, now.UnixNano()) {
		return
	}
	info := c.leg.info()
	if info == nil {
		return
	}
	sent := countOf(info)
	floods := before > 0 && sent.minus(c.sent).floods()
	c.sent = sent
	meets := crowded(micros(info.Rtt), micros(info.Min_rtt)) && (lasts || floods)
	if !meets || !c.leg.yield() || !c.yields.CompareAndSwap(false, true) {
		return
	}
	c.leg.forgive()
	if c.open != nil { // the peer begins streams, and may be about to
		c.leave()
		return
	}
	c.retire()
}

// floods says that one of twenty packets is lost, and not by chance: BBR that has yet to find
// where the path ends sends thrice what it carries.
func (c count) floods() bool { return c.loses(20, 10) }

// crowded says whether a queue stands on the path. BBR alone leaves none.
func crowded(rtt, least time.Duration) bool {
	const queueLeast, part = 2 * time.Millisecond, 4
	queue := rtt - least
	return queue > queueLeast && queue > least/part
}

// yield has BBR make way for cubic, and says whether it did.
func (l leg) yield() (done bool) {
	err := l.control(func(fd int) error {
		now, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || now != bbr {
			return err
		}
		done = true
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, cubic)
	})
	return done && err == nil
}
