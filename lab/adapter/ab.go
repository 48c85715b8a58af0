package adapter

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// ab is the Apache HTTP server's benchmark: HTTP/1.0, its kept connections by
// Connection: Keep-Alive.
//
// A row: ScheduledNs is the second in which the request began, as ab keeps no
// more of it, and the times after it are exact to 1 ms. SentNs comes after the
// dial. Thread is 0, as is FirstByteNs: ab counts its wait from the last byte of
// the request, which it does not tell. Status is 0. Index is 1 for a request that
// dialled, or did so for 0.5 ms at least, and 2 for all others, whose Connection
// is 0. The total has the duration, exactly.
//
// ab does not say which requests failed, so that one that did spoils its output.
//
// By time it ends at once, without the requests that it has begun: those it does not
// count.
type ab struct{}

const (
	abRows   = "ab.tsv"
	abOutput = "ab.out"
	// abMost is how many requests it may make by time: it has room for as many from the
	// start.
	abMost = rowsMax / 4
)

func (ab) abilities() abilities {
	return abilities{fresh: true, timeout: time.Second, timed: time.Second}
}

func (ab) plan(j Job, m load.Message) (Invocation, error) {
	c := j.Cell
	// -l: answers of different lengths are no failures.
	args := []string{"-q", "-l", "-n", strconv.Itoa(requests(c))}
	if c.Timed() { // which sets a number of requests, too
		args = []string{"-q", "-l", "-t", seconds(c.Duration.Std()), "-n", strconv.Itoa(abMost)}
	}
	args = append(args, "-c", strconv.Itoa(c.Threads), "-s", seconds(c.Timeout.Std()), "-g", abRows)
	if c.Connection == experiment.ConnectionKept {
		args = append(args, "-k")
	}
	if len(m.Body) > 0 {
		args = append(args, "-p", bodyFile, "-T", load.ContentType)
	}
	return Invocation{Args: append(args, j.url(m)), Stdout: abOutput}, nil
}

func (ab) read(j Job, folder fs.FS, began Moment) (Result, error) {
	said, err := readFile(folder, abOutput, readABTotal)
	if err != nil {
		return Result{}, err
	}
	kept, timed := j.Cell.Connection == experiment.ConnectionKept, j.Cell.Timed()
	switch want := requests(j.Cell); {
	case said.failed > 0:
		return Result{}, &OutputError{experiment.ToolAB, 0, fmt.Sprintf("%d of %d requests failed, and ab does not say which", said.failed, said.complete)}
	case timed && said.complete >= abMost:
		return Result{}, &OutputError{experiment.ToolAB, 0, fmt.Sprintf("%d requests before %s were over are the most", said.complete, j.Cell.Duration)}
	case !timed && said.complete != int64(want):
		return Result{}, &OutputError{experiment.ToolAB, 0, fmt.Sprintf("%d of %d requests were completed", said.complete, want)}
	case kept && said.kept == 0 && said.complete > int64(j.Cell.Threads):
		return Result{}, &OutputError{experiment.ToolAB, 0, "no connection was kept: the service does not keep those of HTTP/1.0"}
	}
	rows, err := readFile(folder, abRows, func(r io.Reader) ([]sample.Request, error) { return readAB(r, began, kept) })
	if err == nil && int64(len(rows)) != said.complete {
		err = &OutputError{experiment.ToolAB, 0, fmt.Sprintf("%d rows of %d requests", len(rows), said.complete)}
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Requests: rows, Total: &sample.Summary{Requests: said.complete, DurationNs: said.tookNs}}, nil
}

// readAB reads the file of -g.
func readAB(r io.Reader, began Moment, kept bool) ([]sample.Request, error) {
	t, err := openTable(experiment.ToolAB, r, '\t', "seconds", "ctime", "ttime")
	if err != nil {
		return nil, err
	}
	return t.requests(kept, func() sample.Request {
		begin := began.mono(t.whole("seconds", timesMost/int64(time.Second)) * int64(time.Second))
		return sample.Request{
			ScheduledNs: begin, SentNs: begin + t.length("ctime", time.Millisecond),
			LastByteNs: begin + t.length("ttime", time.Millisecond),
		}
	})
}

// abTotal is what ab prints at its end.
type abTotal struct{ complete, failed, kept, tookNs int64 }

// readABTotal reads lines of a name, a colon and a value.
func readABTotal(r io.Reader) (abTotal, error) {
	var t abTotal
	seen := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(r, summaryMax))
	for n := 1; lines.Scan(); n++ {
		name, rest, found := strings.Cut(lines.Text(), ":")
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		into, factor := (*int64)(nil), 1.0
		switch name {
		case "Complete requests":
			into = &t.complete
		case "Failed requests", "Non-2xx responses":
			into = &t.failed
		case "Keep-Alive requests":
			into = &t.kept
		case "Time taken for tests":
			into, factor = &t.tookNs, float64(time.Second)
		}
		if !found || into == nil {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if ns := v * factor; err != nil || !(ns >= 0 && ns <= float64(timesMost)) {
			return abTotal{}, &OutputError{experiment.ToolAB, n, fmt.Sprintf("%s is %.40q, not a number", name, value)}
		}
		*into += int64(math.Round(v * factor))
		seen[name] = true
	}
	if err := lines.Err(); err != nil {
		return abTotal{}, &OutputError{experiment.ToolAB, 0, err.Error()}
	}
	for _, name := range []string{"Complete requests", "Failed requests", "Time taken for tests"} {
		if !seen[name] {
			return abTotal{}, &OutputError{experiment.ToolAB, 0, "it does not say: " + name}
		}
	}
	return t, nil
}
