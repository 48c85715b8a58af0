package datagram

import "time"

const (
	// earlyBytes bounds what waits for flows to be opened.
	earlyBytes = 256 << 10
	// earlyLasts is how long it does.
	earlyLasts = time.Second
)

// early are datagrams that came before the flow that they are of could take them, in the
// order in which they came: QUIC sends them beside the message that opens it, and either
// may be lost or late.
type early struct {
	waiting []waiting
	bytes   int
}

type waiting struct {
	flow     uint64
	datagram []byte
	since    time.Time
}

// add takes one, and says how many gave way to it or have waited too long.
func (e *early) add(flow uint64, datagram []byte, now time.Time) (dropped int) {
	dropped = e.expire(now)
	for e.bytes+len(datagram)+waitingBytes > earlyBytes {
		e.pop()
		dropped++
	}
	e.waiting = append(e.waiting, waiting{flow, datagram, now})
	e.bytes += len(datagram) + waitingBytes
	return dropped
}

// take gives those of a flow.
func (e *early) take(flow uint64, now time.Time) (datagrams [][]byte, dropped int) {
	dropped = e.expire(now)
	rest := e.waiting[:0:0]
	e.bytes = 0
	for _, w := range e.waiting {
		if w.flow == flow {
			datagrams = append(datagrams, w.datagram)
			continue
		}
		rest = append(rest, w)
		e.bytes += len(w.datagram) + waitingBytes
	}
	e.waiting = rest
	return datagrams, dropped
}

func (e *early) expire(now time.Time) (dropped int) {
	for len(e.waiting) > 0 && now.Sub(e.waiting[0].since) > earlyLasts {
		e.pop()
		dropped++
	}
	return dropped
}

func (e *early) pop() {
	e.bytes -= len(e.waiting[0].datagram) + waitingBytes
	e.waiting[0] = waiting{}
	e.waiting = e.waiting[1:]
}
