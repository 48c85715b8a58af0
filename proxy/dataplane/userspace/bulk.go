package userspace

// What a side does that has much to say: its bytes go by a pipe (splice(2)), in few turns:
// docs/adr/0047-userspace-plane.md.

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bulkAfter is how many full reads in a row make a side bulk. It is bulk no longer when
	// something, but less than bulkLeast, was there bulkSmall times in a row: one end of what was
	// said is small in bulk, too.
	bulkAfter = 2
	bulkLeast = 32 << 10
	bulkSmall = 8
	// Of a side that is bulk epoll tells once bulkMark bytes are there (socket(7),
	// SO_RCVLOWAT), and the loop looks for less by itself lateAfter that there was nothing
	// left: the fewer turns bytes take, the less CPU time. After emptyMost looks in a row that
	// found nothing epoll tells of the first byte.
	bulkMark  = 512 << 10
	lateAfter = 200 * time.Microsecond
	emptyMost = 8
	// Where crowdLeast sides of a loop or more say something in bulk within crowdWindow, it has
	// others to move while one waits for crowdMark bytes, and one that falls silent is left to
	// epoll at once.
	crowdLeast  = 6
	crowdWindow = 50 * time.Millisecond
	crowdMark   = 1 << 20
)

// bulk is what a side is that has much to say.
type bulk struct {
	full   int // reads in a row that filled scratch
	pipe   *pipe
	pulled int  // into the pipe, since there was nothing to read
	empty  int  // looks in a row that found nothing
	small  int  // times in a row that this was little
	marked bool // epoll tells of much, and of no less
	late   bool // the loop will look at it
	joined uint // 1 + the window of the crowd in which it was counted last; 0 is none
}

// crowd counts the sides that say something in bulk, by windows of time.
type crowd struct {
	window    uint
	began     time.Duration // the window
	here, was int           // in this window, and in that before
}

// joins counts a side once in a window.
func (c *crowd) joins(s *side, now time.Duration) {
	if past := now - c.began; past >= crowdWindow {
		c.was = c.here
		if past >= 2*crowdWindow {
			c.was = 0
		}
		c.window, c.began, c.here = c.window+1, now, 0
	}
	if s.joined <= c.window {
		s.joined = c.window + 1
		c.here++
	}
}

// crowded says whether there are many, as soon as there are and for the window after.
func (c *crowd) crowded() bool { return max(c.here, c.was) >= crowdLeast }

// pull fills the pipe of a side that is bulk. In a crowd it leaves the first bytes after a silence
// until those behind them are there.
func (s *side) pull() bool {
	l := s.conn.loop
	l.joins(s, l.now())
	if !s.marked && !s.hung && l.crowded() {
		s.readable = false
		s.lookLater()
		return false
	}
	if s.pipe == nil {
		if s.pipe = l.takePipe(); s.pipe == nil { // no descriptors left: copying does as well
			s.notBulk()
			return true
		}
	}
	n, errno := splice(s.fd, s.pipe.in, pipeSize)
	switch {
	case errno == unix.EINTR:
		return true
	case errno == unix.EAGAIN:
		s.readable = false
		s.drained()
		s.rest()
		return false
	case errno != 0:
		s.conn.abort(s)
		return false
	case n == 0:
		s.rest()
		s.end()
		return false
	}
	s.pulled += n
	s.count(n)
	l.counts.spliced.Add(int64(n))
	s.pipe.holds += n
	return true
}

// drained has read all that was there. The loop looks at a side that stays bulk a little
// later, whether or not epoll tells of it, unless it has fallen silent.
func (s *side) drained() {
	l := s.conn.loop
	if s.pulled == 0 {
		s.empty++
	} else {
		s.empty = 0
		s.small++
	}
	if s.pulled >= bulkLeast {
		s.small = 0
	}
	switch {
	case s.small == bulkSmall:
		s.notBulk()
	case s.empty == emptyMost, s.empty > 0 && l.crowded():
		s.empty = 0
		s.mark(false)
	default:
		s.lookLater()
	}
}

// lookLater has the loop look at a side a little later, and epoll tell of it earlier if much is
// there.
func (s *side) lookLater() {
	s.mark(true)
	if s.late {
		return
	}
	s.late = true
	l := s.conn.loop
	if l.late = append(l.late, s); len(l.late) == 1 {
		l.lateAt = l.now() + lateAfter
	}
}

// lookLate looks at them, once it is time.
func (l *loop) lookLate() {
	if len(l.late) == 0 || l.now() < l.lateAt {
		return
	}
	late := l.late
	l.late, l.wasLate = l.wasLate[:0], late
	for _, s := range late {
		s.late, s.readable = false, true
		l.move(s)
	}
}

// notBulk has what comes copied.
func (s *side) notBulk() {
	s.full, s.small = 0, 0
	s.mark(false)
}

// mark has epoll tell of the side once much is there, or from the first byte on.
func (s *side) mark(much bool) {
	if s.marked == much {
		return
	}
	s.marked = much
	least := int32(1)
	if much {
		least = bulkMark
		if s.conn.loop.crowded() {
			least = crowdMark
		}
	}
	set(s.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, least) // refused, it tells of the first
}

// push empties the pipe. It says whether nothing is left in it.
func (s *side) push() bool {
	if !s.to.writable {
		return false
	}
	for s.pipe.holds > 0 {
		n, errno := splice(s.pipe.out, s.to.fd, s.pipe.holds)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			s.to.writable = false
			return false
		case errno != 0:
			s.to.takesNoMore()
			return false
		default:
			s.pipe.holds -= n
		}
	}
	return true
}

// rest gives the pipe to others until there is more to read.
func (s *side) rest() {
	s.pulled = 0
	if s.pipe != nil && s.pipe.holds == 0 {
		s.conn.loop.givePipe(s.pipe)
		s.pipe = nil
	}
}
