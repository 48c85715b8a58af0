package datagram

import "sync"

const (
	// laneBytes is the most of one flow that waits to be sent.
	laneBytes = 256 << 10
	// queueBytes is the most of all flows of a connection.
	queueBytes = 2 << 20
	// waitingBytes is counted for each datagram beside its own.
	waitingBytes = 64
)

// lane is what waits of one flow, the oldest first. The queue that it is of holds its
// lock.
type lane struct {
	flow    uint64
	waiting [][]byte
	bytes   int
	inTurn  bool
}

// queue is what waits to be sent over a connection. Flows take turns, so that a small one
// does not wait for all of a large one, and where there is no room the oldest datagram
// gives way. It is safe for concurrent use.
type queue struct {
	// ready has room for one: something may be there.
	ready chan struct{}

	mu    sync.Mutex
	turns []*lane // those that have something, the next one first
	bytes int
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// add takes a datagram, which the queue then owns, and says how many gave way to it.
func (q *queue) add(l *lane, datagram []byte) (dropped int) {
	size := len(datagram) + waitingBytes
	q.mu.Lock()
	for len(l.waiting) > 0 && l.bytes+size > laneBytes {
		q.popLocked(l)
		dropped++
	}
	for q.bytes+size > queueBytes {
		q.popLocked(q.longestLocked())
		dropped++
	}
	l.waiting = append(l.waiting, datagram)
	l.bytes += size
	q.bytes += size
	if !l.inTurn {
		l.inTurn = true
		q.turns = append(q.turns, l)
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return dropped
}

// next gives the datagram whose turn it is, and the lane that it was in: nil where none
// waits.
func (q *queue) next() (*lane, []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) > 0 {
		l := q.turns[0]
		q.turns[0] = nil
		q.turns = q.turns[1:]
		if len(l.waiting) == 0 { // what it had gave way
			l.inTurn = false
			continue
		}
		datagram := q.popLocked(l)
		if l.inTurn = len(l.waiting) > 0; l.inTurn {
			q.turns = append(q.turns, l)
		}
		return l, datagram
	}
	return nil, nil
}

// longestLocked is the flow of which the most waits.
func (q *queue) longestLocked() *lane {
	longest := q.turns[0]
	for _, l := range q.turns {
		if l.bytes > longest.bytes {
			longest = l
		}
	}
	return longest
}

func (q *queue) popLocked(l *lane) []byte {
	datagram := l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil // so that an idle flow keeps nothing
	}
	l.bytes -= len(datagram) + waitingBytes
	q.bytes -= len(datagram) + waitingBytes
	return datagram
}
