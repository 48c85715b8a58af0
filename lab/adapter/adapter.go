// Package adapter drives a cell by the load tools that papers measured with: ab,
// hey, JMeter, k6 and wrk. It says what command line and what files a tool needs
// for a cell, and reads what the tool wrote into lab/sample: a row for each
// request where the tool keeps them, else the tool's total. What a tool cannot do
// is an error before anything runs, never something else that is measured in its
// place.
//
// It starts nothing: lab/adapter/program finds the tools, lab/run runs them. No
// tool checks an answer's body, as Skerry's own load does, and each has its own
// idea of where a response time begins: the comment on its type says which, with
// what of sample.Request stays 0.
//
// Start at Check, Plan and Read; each tool is a file.
package adapter

import (
	"fmt"
	"io/fs"
	"net/url"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// Job is the load of one repetition of a cell.
type Job struct {
	Cell experiment.Cell
	// Target is HOST:PORT; of a cell with a ratio Targets are, one for each entry.
	Target  string
	Targets []string
	// Seed of the body's random bytes.
	Seed uint64
}

// Spec is the load of a cell as Skerry's own generator takes it.
func (j Job) Spec() load.Spec {
	c := j.Cell
	s := load.Spec{
		Protocol: c.Protocol, Workload: c.Workload, Size: c.Size, Work: load.Work{Time: c.Time, Memory: c.Memory},
		Iterations: c.Iterations, Warmup: c.Warmup, OpenLoop: load.OpenLoop(c.OpenLoop),
		Think: c.Think, Ramp: c.Ramp, Timeout: c.Timeout, Connection: c.Connection, Seed: j.Seed,
	}
	if c.Ratio == "" {
		s.Target, s.Threads = j.Target, c.Threads
		return s
	}
	for i, threads := range c.AtEntries() {
		if i < len(j.Targets) && (threads > 0 || c.Rotate > 0) {
			s.Targets = append(s.Targets, load.Target{Target: j.Targets[i], Threads: threads})
		}
	}
	return s
}

// Split are the jobs of each entry by itself, of those at which the cell has threads;
// of a cell without a ratio the job is the only one.
func (j Job) Split() (all []Job) {
	each := j.Cell.AtEntries()
	if each == nil {
		return []Job{j}
	}
	for i, target := range j.Targets {
		if i < len(each) && each[i] > 0 {
			one := j
			one.Target, one.Targets, one.Cell.Ratio, one.Cell.Threads = target, nil, "", each[i]
			all = append(all, one)
		}
	}
	return all
}

// Merge puts together what jobs have seen at the same time, as Split gave them. Where
// the tool does not tell threads apart, all rows of a job are those of its first.
func Merge(jobs []Job, results []Result) (merged Result, err error) {
	if len(results) == 1 {
		return results[0], nil
	}
	first, rows := int32(0), 0
	for _, r := range results {
		rows += len(r.Requests)
	}
	if rows > rowsMax {
		return Result{}, &OutputError{jobs[0].Cell.Tool, 0, fmt.Sprintf("%d rows of all entries are more than %d", rows, int(rowsMax))}
	}
	for i, r := range results {
		for _, q := range r.Requests {
			q.Thread += first
			merged.Requests = append(merged.Requests, q)
		}
		if r.Total != nil {
			merged.Total = added(merged.Total, *r.Total)
		}
		first += int32(jobs[i].Cell.Threads)
	}
	inOrder(merged.Requests)
	return merged, nil
}

// added is a total with the requests of another, made at the same time.
func added(total *sample.Summary, other sample.Summary) *sample.Summary {
	if total == nil {
		return &other
	}
	total.Requests += other.Requests
	total.Errors += other.Errors
	total.DurationNs = max(total.DurationNs, other.DurationNs)
	return total
}

// url of the job's requests.
func (j Job) url(m load.Message) string { return "http://" + j.Target + m.Path }

// hostPort are the two parts of the target.
func (j Job) hostPort() (host, port string, err error) {
	u, err := url.Parse("http://" + j.Target)
	if err != nil {
		return "", "", fmt.Errorf("target %q: %w", j.Target, err)
	}
	return u.Hostname(), u.Port(), nil
}

// requests is how many of them the load makes: those of an open loop by its rate. Of
// one by time nobody knows.
func requests(c experiment.Cell) int {
	if c.Rate > 0 {
		return int(float64(c.Rate)*c.Duration.Std().Seconds() + 0.5)
	}
	return c.Threads * (c.Iterations + c.Warmup)
}

// Longest is how long a load takes whose requests all time out, a hundred years at
// most.
func Longest(c experiment.Cell) time.Duration {
	inTurn := c.Iterations + c.Warmup + 1
	if c.Tool == experiment.ToolHey && c.Rate > 0 {
		inTurn = heyRequests(c) / c.Threads
	}
	return c.Ramp.Std() + c.Settle.Std() + c.Duration.Std() + together(inTurn, c.Timeout.Std()+c.Think.Std())
}

// together are n times one after the other, within timesMost.
func together(n int, each time.Duration) time.Duration {
	return time.Duration(min(float64(n)*float64(each), float64(timesMost)))
}

// Invocation is how a tool is run for a job, in a folder that it may fill.
type Invocation struct {
	// Args follow the program. Files are named as the folder has them, so that the
	// same cell always has the same command line.
	Args []string
	// Env is added to the environment.
	Env []string
	// Files to write first, by name.
	Files map[string][]byte
	// Stdout is the file that takes what the tool prints, to be read with the rest.
	Stdout string
}

// bodyFile holds the body of a job's requests.
const bodyFile = "body.bin"

// Moment is one moment on two clocks, in ns: by it a tool's wall-clock times are
// put on the clock of sample.Request.
type Moment struct{ RealNs, MonoNs int64 }

func (m Moment) mono(realNs int64) int64 { return realNs - m.RealNs + m.MonoNs }

// Result is what a tool has seen of a job.
type Result struct {
	// Requests in the order in which they began; nil where the tool keeps none.
	Requests []sample.Request
	// Total is set where the tool keeps no requests, or not when each began.
	Total *sample.Summary
}

// Plan says how the tool of the cell is run. The error is that of Check, or says
// that the target is no address.
func Plan(j Job) (Invocation, error) {
	t, known := tools()[j.Cell.Tool]
	if !known {
		return Invocation{}, fmt.Errorf("%w: %q", ErrUnknown, j.Cell.Tool)
	}
	if lacks := Unable(j.Cell); len(lacks) > 0 {
		return Invocation{}, lacks[0]
	}
	m := j.Spec().Message()
	i, err := t.plan(j, m)
	if err == nil && len(m.Body) > 0 {
		if i.Files == nil {
			i.Files = map[string][]byte{}
		}
		i.Files[bodyFile] = m.Body
	}
	return i, err
}

// Read reads what the tool left in its folder. Began is a moment just before the
// tool was started. An error of what the tool wrote is an *OutputError.
func Read(j Job, folder fs.FS, began Moment) (Result, error) {
	t, known := tools()[j.Cell.Tool]
	if !known {
		return Result{}, fmt.Errorf("%w: %q", ErrUnknown, j.Cell.Tool)
	}
	return t.read(j, folder, began)
}

// tool is one of them.
type tool interface {
	abilities() abilities
	plan(Job, load.Message) (Invocation, error)
	read(Job, fs.FS, Moment) (Result, error)
}

func tools() map[string]tool {
	return map[string]tool{
		experiment.ToolAB: ab{}, experiment.ToolHey: hey{}, experiment.ToolJMeter: jmeter{},
		experiment.ToolK6: k6{}, experiment.ToolWrk: wrk{},
	}
}

// seconds are whole ones, as Unable has made sure.
func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// milliseconds are whole ones, as Unable has made sure.
func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
