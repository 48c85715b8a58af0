package oracle

import (
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// model is what becomes of the requests of a cell on their way.
type model struct {
	cell       experiment.Cell
	congestion string
	// request goes there, its answer comes back.
	request, answer message
	there, back     way
}

// way is one direction of all links of a hop map.
type way struct {
	delay time.Duration
	// rates of the stages that have one, in the order of the way, in bit/s.
	rates []float64
	// delayed counts the links with a delay.
	delayed                 int
	lossy, jitter, reorders bool
	// skewed says that most packets may take less than the mean delay.
	skewed bool
	// replays is that a link does what a trace says.
	replays bool
}

func newModel(cell experiment.Cell, hops experiment.HopMap, congestion string) model {
	path := []topology.Ref{hops.Start}
	for _, h := range hops.Hops {
		path = append(path, h.To)
	}
	slices.Reverse(path)
	m := model{cell: cell, congestion: congestion, there: newWay(hops), back: newWay(cell.Scenario.HopMap(path))}
	if cell.OneWay() { // nothing comes back
		m.back = way{}
	}
	m.request, m.answer = messages(cell)
	return m
}

// tcp reports that it carries the requests.
func (m model) tcp() bool {
	return m.cell.Protocol != experiment.ProtocolUDP && !m.cell.OneWay()
}

func newWay(hops experiment.HopMap) way {
	var w way
	for _, h := range hops.Hops {
		together := h.Link.Together()
		w.delay += together.Delay.Std()
		if together.Delay > 0 {
			w.delayed++
		}
		for _, stage := range h.Link {
			if stage.Rate > 0 {
				w.rates = append(w.rates, float64(stage.Rate))
			}
			// A receiver drops what is corrupted.
			w.lossy = w.lossy || stage.Lossy() || stage.Corrupt > 0
			skewed := stage.Distribution == impair.Pareto || stage.Distribution.IsFile()
			w.skewed = w.skewed || stage.Reorder > 0 || stage.Jitter > 0 && skewed
		}
		w.replays = w.replays || h.Link.Replays()
		w.jitter = w.jitter || together.Jitter > 0
		w.reorders = w.reorders || together.Reorder > 0 || together.Unordered
	}
	return w
}

func (m model) rtt() time.Duration { return m.there.delay + m.back.delay }

// streams reports an echo that answers each byte as it arrives, so that the
// answer is on its way while the request still comes.
func (m model) streams() bool { return m.cell.Protocol == experiment.ProtocolTCP }

// serialisation of a request and its answer, one after the other unless the
// workload streams.
func (m model) serialisation() time.Duration {
	if m.streams() {
		return max(
			m.there.takes(m.request)+m.back.onto(m.answer.frame),
			m.there.onto(m.request.frame)+m.back.takes(m.answer),
		)
	}
	return m.there.takes(m.request) + m.back.takes(m.answer)
}

// takes is how much longer the last byte of a message is on its way than a bit
// alone: all of it goes through each link, which has to wait for the first frame from
// those before it, and of which those behind wait for the last.
func (w way) takes(m message) (longest time.Duration) {
	for i, rate := range w.rates {
		before, behind := way{rates: w.rates[:i]}, way{rates: w.rates[i+1:]}
		longest = max(longest, before.onto(m.frame)+onto(m.bytes, rate)+behind.onto(m.last))
	}
	return longest
}

// onto is how long some bytes take that go through all links as one frame.
func (w way) onto(bytes int) (total time.Duration) {
	for _, rate := range w.rates {
		total += onto(bytes, rate)
	}
	return total
}

// onto is how long some bytes take onto a link of a rate in bit/s.
func onto(bytes int, rate float64) time.Duration {
	return time.Duration(8e9 * float64(bytes) / rate)
}

// notes say what the prediction leaves out, and what stands behind it.
func (m model) notes(p Prediction, fresh ramp) []string {
	var notes []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	tcp := m.tcp()
	ramps := tcp && fresh.rounds > 0
	kept := m.cell.Connection != experiment.ConnectionNew
	timeout := m.timeout()
	add(kept && p.First > p.Expected, "request 1 of a connection: %s, with the dial and %d round trips of slow start", p.First.Round(time.Microsecond), fresh.rounds)
	add(kept && p.Rounds > 0, "connections are idle for longer than the retransmission timeout of about %s: slow start begins anew", timeout.Round(time.Millisecond))
	if m.cell.Rate > 0 {
		idle := time.Duration(float64(m.cell.Threads) / float64(m.cell.Rate) * 1e9)
		add(kept && ramps && idle > timeout && m.restarts(),
			"each connection waits about %s for its next request, longer than the retransmission timeout: slow start begins anew, which is left out", idle.Round(time.Millisecond))
	}
	elsewhere := 0
	for i, threads := range m.cell.AtEntries() {
		if i > 0 {
			elsewhere += threads
		}
	}
	add(elsewhere > 0, "%d of %d threads call another entry than the first, whose way this is", elsewhere, m.cell.Threads)
	add(m.there.replays || m.back.replays, "links replay a trace: its rates and delays are left out")
	faults := len(m.cell.Scenario.Faults())
	add(faults > 0, "faults happen while the load runs: this is without them")
	add(len(m.cell.Scenario.Timeline) > faults, "links change while the load runs: this is of its beginning")
	add(m.there.skewed || m.back.skewed, "delays are shorter than their mean more often than longer: the limit is of the mean, which a median may lie below")
	add(tcp && (m.there.lossy || m.back.lossy), "links lose packets: what TCP makes of that is left out")
	add(tcp && (m.there.reorders || m.back.reorders), "links reorder packets: what TCP takes for lost of them is left out")
	add(ramps && m.congestion == cubic && (m.there.jitter || m.back.jitter), "jitter may end the slow start of cubic early (HyStart)")
	add(ramps && !slices.Contains([]string{cubic, reno, bbr}, m.congestion), "the slow start of %s is taken for that of reno", m.congestion)
	add(tcp && m.congestion == bbr && max(m.request.segments, m.answer.segments) > 1,
		"bbr paces what it sends: about a round trip more each way, on warm connections, too")
	add(tcp && m.there.delayed > 1, "%d links have a delay: a proxy between them that ends TCP has the dial and slow start of each leg by itself", m.there.delayed)
	add(m.cell.Protocol == experiment.ProtocolHTTP2 && m.request.segments > flowControlled, "flow control of HTTP/2 may add round trips to a request of this size")
	if most := m.carries(); most > 0 && p.Rate > most {
		add(true, "the threads share the links, whose rate is reached at %.3g requests/s", most)
	}
	add(m.cell.Workload == "burn" && m.cell.Threads > 1, "each request keeps a core busy: those beyond the service's cores wait")
	return notes
}

// carries is the requests per second at which a link is full, 0 without rates.
func (m model) carries() float64 {
	var longest time.Duration
	for _, way := range []struct {
		way
		message
	}{{m.there, m.request}, {m.back, m.answer}} {
		if len(way.rates) > 0 {
			longest = max(longest, onto(way.bytes, slices.Min(way.rates)))
		}
	}
	if longest == 0 {
		return 0
	}
	return 1 / longest.Seconds()
}
