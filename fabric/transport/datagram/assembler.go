package datagram

import (
	"bytes"
	"time"
)

const (
	// partialsMax bounds datagrams of which parts are missing: 64 × 9600 bytes.
	partialsMax = 64
	// partialLasts is how long one waits for its parts.
	partialLasts = time.Second
)

// partial is a datagram of which parts are missing.
type partial struct {
	flow    uint64
	number  uint16
	parts   [][]byte
	missing int
	bytes   int
	since   time.Time
}

// assembler puts datagrams together that came in parts.
type assembler struct {
	// waiting are in the order in which their first parts came.
	waiting []*partial
}

// add takes a part. It gives the datagram that is whole by it, if one is, and says how
// many will never be.
func (a *assembler) add(p packet, now time.Time) (whole []byte, dropped int) {
	dropped = a.expire(now)
	i := a.find(p)
	if i < 0 {
		if len(a.waiting) == partialsMax {
			a.remove(0)
			dropped++
		}
		a.waiting = append(a.waiting, &partial{flow: p.flow, number: p.number, parts: make([][]byte, p.parts), missing: int(p.parts), since: now})
		i = len(a.waiting) - 1
	}
	w := a.waiting[i]
	switch {
	case len(w.parts) != int(p.parts) || w.bytes+len(p.payload) > DatagramBytes:
		a.remove(i) // not of one datagram, or of one that nobody may send
		return nil, dropped + 1
	case w.parts[p.part] != nil: // it came twice
		return nil, dropped
	}
	w.parts[p.part] = p.payload
	w.bytes += len(p.payload)
	if w.missing--; w.missing > 0 {
		return nil, dropped
	}
	a.remove(i)
	return bytes.Join(w.parts, nil), dropped
}

// expire gives up those that have waited too long.
func (a *assembler) expire(now time.Time) (dropped int) {
	for len(a.waiting) > 0 && now.Sub(a.waiting[0].since) > partialLasts {
		a.remove(0)
		dropped++
	}
	return dropped
}

func (a *assembler) find(p packet) int {
	for i, w := range a.waiting {
		if w.flow == p.flow && w.number == p.number {
			return i
		}
	}
	return -1
}

func (a *assembler) remove(i int) {
	copy(a.waiting[i:], a.waiting[i+1:])
	a.waiting[len(a.waiting)-1] = nil
	a.waiting = a.waiting[:len(a.waiting)-1]
}
