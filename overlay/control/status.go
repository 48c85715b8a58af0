package control

import "time"

// Status is what a daemon has done since it began.
type Status struct {
	// ClockNs and StartedNs are times of CLOCK_TAI; ChangeNs is when the list that is
	// pending follows, 0 where none is.
	ClockNs   int64 `json:"clock_ns"`
	StartedNs int64 `json:"started_ns"`
	ChangeNs  int64 `json:"change_ns"`
	Clients   int   `json:"clients"`
	Sockets   int   `json:"sockets"`
	// Malformed packets were refused for what they say of themselves, Unrouted ones go to
	// an address without a route, Overrun ones the port did not take.
	Malformed uint64 `json:"malformed"`
	Unrouted  uint64 `json:"unrouted"`
	Overrun   uint64 `json:"overrun"`
	// Classes are the traffic classes that a packet has come for.
	Classes []Class `json:"classes"`
	// Late is how long after a packet could leave it was handed to the port, Gap the time
	// from one poll to the next.
	Late Spread `json:"late"`
	Gap  Spread `json:"gap"`
}

// Class is a traffic class: what became of its packets.
type Class struct {
	Class    int    `json:"class"`
	Waiting  uint64 `json:"waiting"`
	Queued   uint64 `json:"queued"`
	Sent     uint64 `json:"sent"`
	Late     uint64 `json:"late"`
	Early    uint64 `json:"early"`
	Oversize uint64 `json:"oversize"`
	Full     uint64 `json:"full"`
	Missed   uint64 `json:"missed"`
	// Misplaced packets left outside of their window; Unexplained are those of which no
	// delay as long as the guard band says why.
	Misplaced   uint64 `json:"misplaced"`
	Unexplained uint64 `json:"unexplained"`
}

// Spread is a histogram's: how many values there are, and quantiles of them.
type Spread struct {
	N    uint64        `json:"n"`
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
}

func (a *answer) status() Status {
	s := Status{
		ClockNs: a.ClockNs, StartedNs: a.StartedNs, ChangeNs: a.ChangeNs,
		Clients: int(a.Clients), Sockets: int(a.Sockets),
		Malformed: a.Malformed, Unrouted: a.Unrouted, Overrun: a.Overrun,
		Late: a.Late.spread(), Gap: a.Gap.spread(),
	}
	for i, c := range a.Class {
		if c == (class{}) {
			continue
		}
		s.Classes = append(s.Classes, Class{
			Class: i, Waiting: c.Waiting, Misplaced: c.Misplaced, Unexplained: c.Unexplained,
			Queued: c.Fate[0], Sent: c.Fate[1], Late: c.Fate[2], Early: c.Fate[3], Oversize: c.Fate[4], Full: c.Fate[5], Missed: c.Fate[6],
		})
	}
	return s
}

func (h *histogram) spread() Spread {
	s := Spread{P50: h.quantile(0.5), P99: h.quantile(0.99), P999: h.quantile(0.999), Max: time.Duration(h.MaxNs)}
	for _, n := range h.Count {
		s.N += n
	}
	return s
}
