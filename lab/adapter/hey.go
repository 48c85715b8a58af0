package adapter

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// hey is a generator in Go, on net/http. Its rate is a limit for each worker: a
// worker that waits for an answer past its next turn loses that turn, and the load
// takes longer.
//
// A row: ScheduledNs is when the request began, exact to 0.1 ms as all of hey's
// times are, counted from when hey was started. SentNs comes after the dial.
// Thread is 0. Index is 1 for a request that dialled, or did so for 0.05 ms at
// least, and 2 for all others, whose Connection is 0. Warm-up are the requests
// that began first, of all workers together.
//
// hey leaves out what failed: that is as many rows as are missing, with the error
// "error", never among the warm-up, and due with the first request behind that, for
// want of a time of their own.
type hey struct{}

const (
	heyRows = "hey.csv"
	// heyRowsMax is where hey stops to keep requests.
	heyRowsMax = 1_000_000
)

func (hey) abilities() abilities {
	return abilities{warmup: true, fresh: true, open: true, timeout: time.Second, requestsMax: heyRowsMax}
}

// heyRequests are a multiple of the workers: hey leaves out what is over.
func heyRequests(c experiment.Cell) int {
	return (requests(c) + c.Threads - 1) / c.Threads * c.Threads
}

func (hey) plan(j Job, m load.Message) (Invocation, error) {
	c := j.Cell
	args := []string{
		"-n", strconv.Itoa(heyRequests(c)), "-c", strconv.Itoa(c.Threads), "-t", seconds(c.Timeout.Std()),
		"-m", m.Method, "-disable-compression", "-disable-redirects", "-o", "csv",
	}
	if c.Rate > 0 {
		args = append(args, "-q", strconv.FormatFloat(float64(c.Rate)/float64(c.Threads), 'g', -1, 64))
	}
	if c.Connection == experiment.ConnectionNew {
		args = append(args, "-disable-keepalive")
	}
	if len(m.Body) > 0 {
		args = append(args, "-D", bodyFile, "-T", load.ContentType)
	}
	return Invocation{Args: append(args, j.url(m)), Stdout: heyRows}, nil
}

func (hey) read(j Job, folder fs.FS, began Moment) (Result, error) {
	kept := j.Cell.Connection == experiment.ConnectionKept
	rows, err := readFile(folder, heyRows, func(r io.Reader) ([]sample.Request, error) { return readHey(r, began, kept) })
	if err != nil {
		return Result{}, err
	}
	want := heyRequests(j.Cell)
	if len(rows) > want {
		return Result{}, &OutputError{experiment.ToolHey, 0, fmt.Sprintf("%d rows of %d requests", len(rows), want)}
	}
	warmup := j.Cell.Threads * j.Cell.Warmup
	warm(rows, warmup)
	lost := sample.Request{Index: 2, ScheduledNs: began.MonoNs, Error: errorOther}
	if warmup < len(rows) {
		lost.ScheduledNs = rows[warmup].ScheduledNs
	}
	for len(rows) < want {
		if !kept {
			lost.Connection, lost.Index = int32(len(rows))+1, 1
		}
		rows = append(rows, lost)
	}
	return Result{Requests: rows}, nil
}

// readHey reads what hey -o csv prints.
func readHey(r io.Reader, began Moment, kept bool) ([]sample.Request, error) {
	t, err := openTable(experiment.ToolHey, r, ',', "response-time", "DNS+dialup", "Response-read", "status-code", "offset")
	if err != nil {
		return nil, err
	}
	return t.requests(kept, func() sample.Request {
		begin := began.MonoNs + t.length("offset", time.Second)
		dial, end := t.length("DNS+dialup", time.Second), begin+t.length("response-time", time.Second)
		status := int32(t.whole("status-code", math.MaxInt16))
		return sample.Request{
			ScheduledNs: begin, SentNs: begin + dial, LastByteNs: end,
			FirstByteNs: max(begin, end-t.length("Response-read", time.Second)),
			Status:      status, Error: statusError(status),
		}
	})
}
