package adapter

import (
	"bufio"
	_ "embed"
	"encoding/json"
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

// wrk is a generator in C with one thread and an event loop here, as Skerry's own
// load has. It keeps no requests, so that all there is of it is a total: a script
// ends it after as many answers as the cell asks for, of all connections together
// and with those that came at the same moment, and prints what it counted, exact to
// 1 us.
//
// A response time begins with the write: the dial of a connection is in none, and
// request 1 counts like all others. Quantiles have wrk's own correction for
// requests that a closed loop did not send while it waited: an answer later than
// twice the mean counts more than once. Failed answers have their response time
// among the others; a request without an answer is never given up.
type wrk struct{}

//go:embed wrk.lua
var wrkScript []byte

const (
	wrkOutput = "wrk.out"
	wrkTotal  = "skerry-total "
	// wrkLongest is where wrk is ended, whatever it has done until then.
	wrkLongest = 24 * time.Hour
)

func (wrk) abilities() abilities { return abilities{think: time.Millisecond, timeout: time.Second} }

func (wrk) plan(j Job, m load.Message) (Invocation, error) {
	c := j.Cell
	longest := min(together(c.Iterations, c.Timeout.Std()+c.Think.Std()), wrkLongest)
	args := []string{
		"-t", "1", "-c", strconv.Itoa(c.Threads), "-d", seconds(longest) + "s", "--timeout", seconds(c.Timeout.Std()) + "s",
		"-s", "wrk.lua", j.url(m), "--", m.Method, strconv.Itoa(requests(c)), milliseconds(c.Think.Std()),
	}
	if len(m.Body) > 0 {
		args = append(args, load.ContentType, bodyFile)
	}
	return Invocation{Args: args, Files: map[string][]byte{"wrk.lua": wrkScript}, Stdout: wrkOutput}, nil
}

func (wrk) read(j Job, folder fs.FS, _ Moment) (Result, error) {
	total, err := readFile(folder, wrkOutput, readWrk)
	if err != nil {
		return Result{}, err
	}
	if missing := int64(requests(j.Cell)) - total.Requests; missing > 0 {
		total.Requests += missing
		total.Errors += missing
		total.Classes["unanswered"] = missing
	}
	return Result{Total: &total}, nil
}

// wrkFigures are what the script prints: times in us, by wrk's own doubles.
type wrkFigures struct {
	Requests int64            `json:"requests"`
	Duration float64          `json:"duration_us"`
	Mean     float64          `json:"mean_us"`
	P50      float64          `json:"p50_us"`
	P90      float64          `json:"p90_us"`
	P99      float64          `json:"p99_us"`
	Max      float64          `json:"max_us"`
	Errors   map[string]int64 `json:"errors"`
}

// readWrk finds the line of the script in what wrk prints.
func readWrk(r io.Reader) (sample.Summary, error) {
	lines := bufio.NewScanner(io.LimitReader(r, summaryMax))
	for n := 1; lines.Scan(); n++ {
		text, found := strings.CutPrefix(lines.Text(), wrkTotal)
		if !found {
			continue
		}
		var f wrkFigures
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return sample.Summary{}, &OutputError{experiment.ToolWrk, n, err.Error()}
		}
		s, err := f.summary()
		if err != nil {
			return sample.Summary{}, &OutputError{experiment.ToolWrk, n, err.Error()}
		}
		return s, nil
	}
	if err := lines.Err(); err != nil {
		return sample.Summary{}, &OutputError{experiment.ToolWrk, 0, err.Error()}
	}
	return sample.Summary{}, &OutputError{experiment.ToolWrk, 0, "it prints no total"}
}

// summary counts what never became an answer as requests, too.
func (f wrkFigures) summary() (sample.Summary, error) {
	s := sample.Summary{Requests: f.Requests, Classes: map[string]int64{}}
	for class, n := range f.Errors {
		if n < 0 || n > rowsMax || f.Requests < 0 || f.Requests > rowsMax {
			return s, fmt.Errorf("%d requests, %d of them with %s", f.Requests, n, class)
		}
		if n == 0 {
			continue
		}
		if class == "connect" || class == "read" || class == "write" {
			s.Requests += n
		}
		s.Errors += n
		s.Classes[class] = n
	}
	for _, t := range []struct {
		us   float64
		into *int64
	}{{f.Duration, &s.DurationNs}, {f.Mean, &s.MeanNs}, {f.P50, &s.P50Ns}, {f.P90, &s.P90Ns}, {f.P99, &s.P99Ns}, {f.Max, &s.MaxNs}} {
		ns := math.Round(t.us * float64(time.Microsecond))
		if !(ns >= 0 && ns <= float64(timesMost)) {
			return s, fmt.Errorf("%g is no time", t.us)
		}
		*t.into = int64(ns)
	}
	return s, nil
}
