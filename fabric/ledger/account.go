package ledger

import (
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// account is what has gone one way. The ledger's lock is held for all of it.
type account struct {
	open  map[*Stream]bool
	ended sums // of streams that are over
	// samples are the sums of late, the oldest first.
	samples []sample
	// idle is since when no stream was open.
	idle time.Time
}

// sums of streams.
type sums struct {
	opened              uint64
	sentBytes, gotBytes int64 // to and from the peer
}

type sample struct {
	at time.Time
	sums
}

const (
	// rateOver is the time that rates are of.
	rateOver = 10 * time.Second
	// forgetAfter is how long an account is kept of which no stream is open.
	forgetAfter = time.Minute
)

func (s *sums) add(t transport.Totals) {
	if t.Open > 0 {
		s.opened++
	}
	s.sentBytes += t.ToPeerBytes
	s.gotBytes += t.ToSocketBytes
}

func (s *sums) addAll(more sums) {
	s.opened += more.opened
	s.sentBytes += more.sentBytes
	s.gotBytes += more.gotBytes
}

func (a *account) sums() sums {
	all := a.ended
	for s := range a.open {
		all.add(s.traffic.Totals())
	}
	return all
}

// Sample notes how much has passed by now, and forgets ways that nothing goes any more.
// It is to be called every second or two.
func (l *Ledger) Sample(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for way, a := range l.accounts {
		if len(a.open) > 0 {
			a.idle = time.Time{}
		} else if a.idle.IsZero() {
			a.idle = now
		}
		if !a.idle.IsZero() && now.Sub(a.idle) >= forgetAfter {
			sums := l.gone[way.Side]
			sums.addAll(a.ended)
			l.gone[way.Side] = sums
			delete(l.accounts, way)
			continue
		}
		a.samples = append(a.samples, sample{now, a.sums()})
		for len(a.samples) > 1 && now.Sub(a.samples[1].at) >= rateOver {
			a.samples = a.samples[1:]
		}
	}
}

// Open counts streams that are not over.
func (l *Ledger) Open() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		n += len(a.open)
	}
	return n
}

// Now is what goes one way.
type Now struct {
	Streams int
	// SentRate and ReceivedRate are bytes a second, over the last ten.
	SentRate, ReceivedRate float64
}

// Now says what goes a way.
func (l *Ledger) Now(way Way, now time.Time) Now {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[way]
	if a == nil {
		return Now{}
	}
	n := Now{Streams: len(a.open)}
	if len(a.samples) > 0 {
		first, last := a.samples[0], a.sums()
		over := max(now.Sub(first.at), time.Second).Seconds()
		n.SentRate = float64(last.sentBytes-first.sentBytes) / over
		n.ReceivedRate = float64(last.gotBytes-first.gotBytes) / over
	}
	return n
}
