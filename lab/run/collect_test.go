package run

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/sample"
)

// stalled is an open loop of 1000 requests a second, each answered within 1 ms, at a server
// that answers nobody from 500 ms on for 200 ms: every request that is due then finds all
// threads at work, and another dials for it.
func stalled() []sample.Request {
	const ms, begin, end = int64(time.Millisecond), 500, 700
	var rows []sample.Request
	for i := range int64(1000) {
		r := sample.Request{Connection: 1, Index: int32(i + 1), ScheduledNs: (i + 1) * ms, LastByteNs: (i + 2) * ms, Status: 200}
		if i >= begin && i < end {
			r.Thread, r.Index, r.LastByteNs = int32(i-begin+1), 1, (end+2)*ms
		}
		rows = append(rows, r)
	}
	return rows
}

// What an open loop is for shows in its figures: the requests that were due in a stall.
func TestStallIsInTheFigures(t *testing.T) {
	for name, c := range map[string]struct {
		cell experiment.Cell
		n    int
		p99  time.Duration
	}{
		"open":   {experiment.Cell{OpenLoop: experiment.OpenLoop{Rate: 1000, Duration: quantity.Duration(time.Second)}}, 1000, 190 * time.Millisecond},
		"closed": {experiment.Cell{}, 799, 0},
	} {
		of := &collection{cell: c.cell}
		of.addRequests(Repetition{}, stalled())
		p := measure.Pool(of.gathered)
		if s := p.Summary; s.N != c.n || len(p.Values.Pooled()) != c.n || s.FirstN != 201 || s.Times.P99 < c.p99 || c.p99 == 0 && s.Times.P99 > time.Millisecond {
			t.Errorf("%s: %d times, %d of them first, p99 %s; want %d, 201 and %s", name, s.N, s.FirstN, s.Times.P99, c.n, c.p99)
		}
	}
}
