package oneway

import (
	"time"

	"skerry.dev/skerry/lab/sample"
)

// ErrorLost is the class of the error of a packet that never arrived.
const ErrorLost = "lost"

// Requests are packets as rows of requests: each is due when it was to leave, and its
// answer is its arrival, at FirstByteNs by the kernel's time and at LastByteNs when it
// was read. A flow sends every cycle, so that of a lost packet it is known when it was
// due; where all of the flow are lost it is 0. toMono is added to the packets' times.
func Requests(packets []sample.OneWay, cycle time.Duration, toMono int64) []sample.Request {
	begins := map[int32]int64{}
	for _, p := range packets {
		if p.ReceivedNs != 0 {
			begins[p.Flow] = p.SentNs - p.Sequence*int64(cycle)
		}
	}
	rows := make([]sample.Request, len(packets))
	for i, p := range packets {
		rows[i] = sample.Request{Thread: p.Flow, Connection: 1, Index: int32(p.Sequence) + 1} //nolint:gosec // within countMax
		switch begin, known := begins[p.Flow]; {
		case p.ReceivedNs != 0:
			rows[i].ScheduledNs, rows[i].FirstByteNs, rows[i].LastByteNs = p.SentNs+toMono, p.ReceivedNs+toMono, p.ReadNs+toMono
		case known:
			rows[i].ScheduledNs, rows[i].Error = begin+p.Sequence*int64(cycle)+toMono, ErrorLost
		default:
			rows[i].Error = ErrorLost
		}
	}
	return rows
}
