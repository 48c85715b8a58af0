// Package oracle says what a cell's figures would be if nothing but physics and
// the protocol cost time, so that a reader sees beside every figure what share
// of the limit it reaches. It is pure and fits nothing to the data. Start at
// Predict, and for what was seen at Observe.
//
// Three times build on one another:
//
//	Limit     RTT + serialisation + service: no system can be faster.
//	Expected  Limit and what TCP adds to it, from end to end, for the requests
//	          that make the median: nothing where connections are kept busy.
//	First     the same for request 1 of a connection.
//
// TCP adds a round trip for the dial of a connection, a broker those in which it
// agrees with its client, and slow start its own. A
// sender starts with 10 segments (RFC 6928) and doubles its window in every
// round trip, since Linux counts the segments acknowledged and not the
// acknowledgements (RFC 3465, without a limit), and acknowledges a burst at
// once. It waits for the rest of each round trip until the window covers the
// pipe or the message has ended; from then on the rate alone counts. A request
// and its answer each have their own window. It starts anew when a connection
// was idle for longer than its retransmission timeout (RFC 5681 §4.1; Linux
// halves it for every timeout that has passed). BBR does not start anew.
//
// This is why a 1 MB echo takes about 15 round trips in a paper that thinks for
// 5 s between requests (CRT-T3, direct, growth per ms of round trip): every
// request pays for all of it. Its 1,428, 14,585, 146,409 and 1,468,879 bytes took
// 1.04, 1.92, 4.67 and 15.0 round trips; the model says 1, 1 + 1 + 1 = 3,
// 1 + 3 + 3 = 7 and 1 + 6 + 6 = 13. What is too much in the middle says that not
// every window began anew there, what lacks at the end is the loss of the
// paper's longer links, which the model leaves out.
package oracle

import (
	"time"

	"skerry.dev/skerry/lab/experiment"
)

// Prediction of one cell. A time of 0 is one that the cell's links do not cost.
type Prediction struct {
	// RTT is the round trip over all links that a request crosses.
	RTT time.Duration
	// Serialisation is what the rates of the links take for the bytes of a
	// request and of its answer, headers included.
	Serialisation time.Duration
	// Service is the time that the workload was asked to take.
	Service time.Duration
	// Limit is the least response time that any system can reach, on a warm
	// connection: RTT + Serialisation + Service. Of delays that vary it has the mean.
	Limit time.Duration
	// Rounds are the round trips that slow start adds to Expected, in both
	// directions together; the last of each may be a part of one.
	Rounds int
	// Expected is the response time over TCP from end to end of the requests that
	// make the median: with a dial where each has a new connection, with the
	// rounds of slow start where that is new or was idle.
	Expected time.Duration
	// First is the same for request 1 of a connection.
	First time.Duration
	// Rate is the requests per second that the threads of a closed loop reach
	// when each takes Expected and the think time: without rates, slow start and
	// dials N / (2·hops·delay + service + think). It is 0 for an open loop.
	Rate float64
	// Notes say which assumption does not hold for the cell, and on what a figure
	// stands that is not Limit alone.
	Notes []string
}

// Share of the limit that a response time reaches: 1 at the limit, 0 where
// either is 0.
func (p Prediction) Share(median time.Duration) float64 {
	if median <= 0 {
		return 0
	}
	return float64(p.Limit) / float64(median)
}

// Predict says what a cell's figures would be for requests that go the way of
// hops, and whose answers come back by it, with a congestion control of Linux:
// cubic, reno, bbr; any other is taken for reno.
func Predict(cell experiment.Cell, hops experiment.HopMap, congestion string) Prediction {
	if hops.Start == "" {
		return Prediction{Notes: []string{"no request was made, so its way is not known"}}
	}
	m := newModel(cell, hops, congestion)
	p := Prediction{RTT: m.rtt(), Serialisation: m.serialisation(), Service: cell.Time.Std()}
	p.Limit = p.RTT + p.Serialisation + p.Service
	p.Expected = p.Limit

	fresh := m.slowStart(func(message) int { return initialWindow })
	p.First = p.Limit + time.Duration(cell.Dial())*p.RTT + fresh.wait
	switch {
	case cell.Connection == experiment.ConnectionNew:
		p.Rounds, p.Expected = fresh.rounds, p.First
	case cell.Rate == 0:
		again := m.slowStart(m.windowAfter(p.Limit + cell.Think.Std()))
		p.Rounds, p.Expected = again.rounds, p.Limit+again.wait
	}
	if cell.Rate == 0 {
		if each := p.Expected + cell.Think.Std(); each > 0 {
			p.Rate = float64(cell.Threads) / each.Seconds()
		}
	}
	p.Notes = m.notes(p, fresh)
	return p
}
