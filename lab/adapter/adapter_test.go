package adapter_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/workload"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s\n(go test ./lab/adapter -update writes it anew)", file, got, want)
	}
}

// cell is the plainest: what the outputs in testdata were recorded with, over
// 5 ms each way.
func cell(tool string) experiment.Cell {
	return experiment.Cell{
		Sender: experiment.Sender{Tool: tool}, Workload: "hello-world", Threads: 2, Iterations: 4,
		Connection: experiment.ConnectionKept, Timeout: quantity.Duration(30 * time.Second),
	}
}

// tools are all but Skerry's own.
func tools() []string { return experiment.Tools()[1:] }

// TestPlan writes down what is run for each tool: the plainest cell, and one with
// a body and all that the tool can do.
func TestPlan(t *testing.T) {
	const ms = quantity.Duration(time.Millisecond)
	rich := map[string]func(*experiment.Cell){
		"ab":     func(c *experiment.Cell) { c.Connection = experiment.ConnectionNew },
		"hey":    func(c *experiment.Cell) { c.Connection, c.Warmup = experiment.ConnectionNew, 3 },
		"jmeter": func(c *experiment.Cell) { c.Warmup, c.Think, c.Ramp, c.Timeout = 3, 5*ms, 2000*ms, 1500*ms },
		"k6":     func(c *experiment.Cell) { c.Warmup, c.Think, c.Ramp, c.Timeout = 3, 5*ms, 1500*ms, 1500*ms },
		"wrk":    func(c *experiment.Cell) { c.Think = 5 * ms },
	}
	open := func(c *experiment.Cell) {
		c.Iterations, c.OpenLoop = 0, experiment.OpenLoop{Rate: 12.5, Arrivals: experiment.ArrivalsConstant, Duration: 1500 * ms}
	}
	var out strings.Builder
	show := func(name string, c experiment.Cell) {
		i, err := adapter.Plan(adapter.Job{Cell: c, Target: "10.1.0.1:8080", Seed: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintf(&out, "%s\n  args   %q\n", name, i.Args)
		if len(i.Env) > 0 {
			fmt.Fprintf(&out, "  env    %q\n", i.Env)
		}
		for _, file := range slices.Sorted(maps.Keys(i.Files)) {
			fmt.Fprintf(&out, "  writes %s, %d bytes\n", file, len(i.Files[file]))
		}
		fmt.Fprintf(&out, "  prints %s\n", i.Stdout)
	}
	for _, tool := range tools() {
		show(tool, cell(tool))
		c := cell(tool)
		c.Workload, c.Size = "payload-echo", 1000
		rich[tool](&c)
		show(tool+" with all", c)
		if tool == "hey" || tool == "k6" {
			c = cell(tool)
			open(&c)
			show(tool+" at a rate", c)
		}
	}
	c := cell("ab")
	c.Iterations, c.Duration = 0, 2000*ms
	show("ab by time", c)
	c = cell("jmeter")
	c.Workload, c.Time, c.Memory = "burn", 5*ms, 1_000_000
	show("jmeter of a workload with a query", c)
	golden(t, "testdata/plan.txt", out.String())
}

func TestPlanOfNoAddress(t *testing.T) {
	if _, err := adapter.Plan(adapter.Job{Cell: cell("jmeter"), Target: "no address:80"}); err == nil {
		t.Error("a target with a space is taken")
	}
	if _, err := adapter.Plan(adapter.Job{Cell: cell("vegeta")}); !errors.Is(err, adapter.ErrUnknown) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// ask is something that a cell asks of its tool, and what the tools say that
// cannot do it.
type ask struct {
	name   string
	change func(*experiment.Cell)
	unable map[string]string
}

func asks() []ask {
	const second, settle = quantity.Duration(time.Second), "leave out the requests of the first 1s"
	return []ask{
		{"warm-up", func(c *experiment.Cell) { c.Warmup = 1 }, map[string]string{
			"ab": "leave out requests that warm up", "wrk": "leave out requests that warm up",
		}},
		{"think time", func(c *experiment.Cell) { c.Think = second / 2000 }, map[string]string{
			"ab": "think between requests", "hey": "think between requests",
			"jmeter": "think for 500µs, only for multiples of 1ms", "wrk": "think for 500µs, only for multiples of 1ms",
		}},
		{"ramp", func(c *experiment.Cell) { c.Ramp = 3 * second / 2 }, map[string]string{
			"ab": "start its threads one after the other", "hey": "start its threads one after the other",
			"jmeter": "start its threads over 1.5s, only over multiples of 1s", "wrk": "start its threads one after the other",
		}},
		{"new connections", func(c *experiment.Cell) { c.Connection = experiment.ConnectionNew }, map[string]string{
			"wrk": "time the dial of a new connection for each request",
		}},
		{"a rate", func(c *experiment.Cell) {
			c.Iterations, c.OpenLoop = 0, experiment.OpenLoop{Rate: 10, Arrivals: experiment.ArrivalsConstant, Duration: second / 2}
		}, map[string]string{
			"ab": "send at a rate, only in a closed loop", "jmeter": "send at a rate, only in a closed loop",
			"k6": "send at a rate for 500ms, only for 1s and more", "wrk": "send at a rate, only in a closed loop",
		}},
		{"Poisson arrivals", func(c *experiment.Cell) {
			c.Iterations, c.OpenLoop = 0, experiment.OpenLoop{Rate: 10, Arrivals: experiment.ArrivalsPoisson, Duration: second}
		}, map[string]string{
			"ab": "send at a rate, only in a closed loop", "jmeter": "send at a rate, only in a closed loop",
			"hey": "send at poisson intervals, only at constant ones", "k6": "send at poisson intervals, only at constant ones",
			"wrk": "send at a rate, only in a closed loop",
		}},
		{"half a second's timeout", func(c *experiment.Cell) { c.Timeout = second / 2 }, map[string]string{
			"ab": "time out after 500ms, only after multiples of 1s", "hey": "time out after 500ms, only after multiples of 1s",
			"wrk": "time out after 500ms, only after multiples of 1s",
		}},
		{"several entries", func(c *experiment.Cell) {
			c.Iterations, c.Ratio, c.Duration = 0, "1:1", 2*second
		}, map[string]string{
			"hey": "request at several entries, each for as long", "jmeter": "request at several entries, each for as long",
			"k6": "request at several entries, each for as long", "wrk": "request at several entries, each for as long",
		}},
		{"several entries for a second and a half", func(c *experiment.Cell) {
			c.Iterations, c.Ratio, c.Duration = 0, "1:1", 3*second/2
		}, map[string]string{
			"ab":  "go on for 1.5s, only for multiples of 1s",
			"hey": "request at several entries, each for as long", "jmeter": "request at several entries, each for as long",
			"k6": "request at several entries, each for as long", "wrk": "request at several entries, each for as long",
		}},
		{"a load that settles", func(c *experiment.Cell) { c.Settle = second }, map[string]string{
			"ab": settle, "hey": settle, "jmeter": settle, "k6": settle, "wrk": settle,
		}},
		{"many requests", func(c *experiment.Cell) { c.Iterations = 600_000 }, map[string]string{
			"hey": "keep 1200000 requests, only 1000000",
		}},
	}
}

// TestUnable has each tool asked for each thing: what it cannot do it says.
func TestUnable(t *testing.T) {
	for _, ask := range asks() {
		for _, tool := range tools() {
			c := cell(tool)
			ask.change(&c)
			want := ""
			if cannot, ok := ask.unable[tool]; ok {
				want = "tool " + tool + " cannot " + cannot
			}
			got := ""
			for _, unable := range adapter.Unable(c) {
				got += unable.Error()
			}
			if got != want {
				t.Errorf("%s asked for %s: got %q, want %q", tool, ask.name, got, want)
			}
			if _, err := adapter.Plan(adapter.Job{Cell: c, Target: "10.1.0.1:80"}); (err == nil) != (want == "") {
				t.Errorf("%s asked for %s: planned with %v", tool, ask.name, err)
			}
		}
	}
	for _, tool := range tools() {
		c := cell(tool)
		c.Protocol = experiment.ProtocolHTTP2
		want := adapter.UnableError{Tool: tool, Cannot: "speak http/2, only http/1.1", Key: "protocol"}
		if lacks := adapter.Unable(c); len(lacks) != 1 || *lacks[0] != want {
			t.Errorf("%s asked for HTTP/2: %+v", tool, lacks)
		}
	}
	c := cell("")
	c.Protocol, c.Warmup = experiment.ProtocolUDP, 9
	if lacks := adapter.Unable(c); len(lacks) > 0 {
		t.Errorf("Skerry's own load: %v", lacks[0])
	}
}

// TestRead writes down what is made of the recorded output of each tool.
func TestRead(t *testing.T) {
	for _, tool := range tools() {
		result, err := adapter.Read(adapter.Job{Cell: cell(tool)}, os.DirFS("testdata"), adapter.Moment{})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		golden(t, "testdata/"+tool+".txt", table(result))
	}
}

// table has times in ms from the first request on.
func table(r adapter.Result) string {
	var out strings.Builder
	if len(r.Requests) > 0 {
		from := r.Requests[0].ScheduledNs
		ms := func(ns int64) string {
			if ns == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", float64(ns-from)/1e6)
		}
		fmt.Fprintln(&out, "thread connection index warmup scheduled sent first last status error")
		for _, q := range r.Requests {
			fmt.Fprintln(&out, q.Thread, q.Connection, q.Index, q.Warmup, ms(q.ScheduledNs), ms(q.SentNs), ms(q.FirstByteNs), ms(q.LastByteNs), q.Status, q.Error)
		}
	}
	if r.Total != nil {
		fmt.Fprintf(&out, "total %+v\n", *r.Total)
	}
	return out.String()
}

// A warm-up is what the tool began with: of each thread where the tool tells
// threads apart, else of all.
func TestWarmup(t *testing.T) {
	for _, tool := range []string{"hey", "jmeter", "k6"} {
		c := cell(tool)
		c.Iterations, c.Warmup = 3, 1
		result, err := adapter.Read(adapter.Job{Cell: c}, os.DirFS("testdata"), adapter.Moment{})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		for i, q := range result.Requests {
			if q.Warmup != (i < 2) {
				t.Errorf("%s: request %d of %d is a warm-up: %t", tool, i+1, len(result.Requests), q.Warmup)
			}
		}
	}
}

// Rows are on the clock of Moment.
func TestMoment(t *testing.T) {
	const realNs, monoNs = int64(1_795_256_000_000_000_000), int64(5_000_000_000)
	for _, tool := range []string{"ab", "hey", "jmeter", "k6"} {
		plain, err := adapter.Read(adapter.Job{Cell: cell(tool)}, os.DirFS("testdata"), adapter.Moment{})
		moved, again := adapter.Read(adapter.Job{Cell: cell(tool)}, os.DirFS("testdata"), adapter.Moment{RealNs: realNs, MonoNs: monoNs})
		if err := errors.Join(err, again); err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		want := monoNs - realNs
		if tool == "hey" { // which counts from its own start
			want = monoNs
		}
		if got := moved.Requests[3].ScheduledNs - plain.Requests[3].ScheduledNs; got != want {
			t.Errorf("%s: moved by %d ns, want %d", tool, got, want)
		}
	}
}

// What a tool leaves out is told, or counted.
func TestShortcomings(t *testing.T) {
	const abSaid = "Complete requests:      2\nFailed requests:        %d\nTime taken for tests:   1.5 seconds\n%s"
	two := cell("ab")
	two.Threads, two.Iterations = 1, 2
	cases := []struct {
		name  string
		tool  experiment.Cell
		files map[string]string
		want  string
	}{
		{"ab, of failures", two, map[string]string{"ab.out": fmt.Sprintf(abSaid, 1, "Keep-Alive requests:    1\n")},
			"ab: 1 of 2 requests failed, and ab does not say which"},
		{"ab, of answers that are no success", two, map[string]string{"ab.out": fmt.Sprintf(abSaid, 0, "Non-2xx responses:      2\n")},
			"ab: 2 of 2 requests failed, and ab does not say which"},
		{"ab, of connections that the service closed", two, map[string]string{"ab.out": fmt.Sprintf(abSaid, 0, "Keep-Alive requests:    0\n")},
			"ab: no connection was kept: the service does not keep those of HTTP/1.0"},
		{"ab, ended early", cell("ab"), map[string]string{"ab.out": fmt.Sprintf(abSaid, 0, "Keep-Alive requests:    2\n")},
			"ab: 2 of 8 requests were completed"},
		{"ab, with rows missing", two, map[string]string{
			"ab.out": fmt.Sprintf(abSaid, 0, "Keep-Alive requests:    2\n"), "ab.tsv": "starttime\tseconds\tctime\tdtime\tttime\twait\nnow\t1\t0\t1\t1\t1\n",
		}, "ab: 1 rows of 2 requests"},
		{"ab, that made all requests it may before its time was over", func() experiment.Cell {
			c := two
			c.Iterations, c.Duration = 0, quantity.Duration(2*time.Second)
			return c
		}(), map[string]string{
			"ab.out": strings.Replace(fmt.Sprintf(abSaid, 0, "Keep-Alive requests:    2\n"), " 2\n", " 5000000\n", 1),
		}, "ab: 5000000 requests before 2s were over are the most"},
		{"hey, with rows too many", func() experiment.Cell { c := two; c.Tool, c.Iterations = "hey", 1; return c }(), map[string]string{
			"hey.csv": "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n" + strings.Repeat("1,0,0,0,0,0,200,0\n", 2),
		}, "hey: 2 rows of 1 requests"},
		{"jmeter, ended early", cell("jmeter"), map[string]string{"jmeter.csv": "timeStamp,elapsed\n1000,20\n1500,10\n"}, "jmeter: 2 rows of 8 requests"},
		{"k6, ended early", cell("k6"), map[string]string{
			"k6.csv": "metric_name,timestamp,metric_value,error_code,status,extra_tags,metadata\nhttp_reqs,1,1.0,,200,,vu=1&iter=0\n",
		}, "k6: 1 rows of 8 requests"},
		{"a file that is not there", cell("k6"), nil, "what the tool wrote: open k6.csv: file does not exist"},
	}
	for _, c := range cases {
		folder := fstest.MapFS{}
		for name, text := range c.files {
			folder[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if _, err := adapter.Read(adapter.Job{Cell: c.tool}, folder, adapter.Moment{}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}

	c := cell("wrk")
	c.Iterations = 10
	result, err := adapter.Read(adapter.Job{Cell: c}, os.DirFS("testdata"), adapter.Moment{})
	if err != nil || result.Total.Requests != 20 || result.Total.Errors != 12 || result.Total.Classes["unanswered"] != 12 {
		t.Errorf("wrk: %+v, %v", result.Total, err)
	}
}

// What hey leaves out takes no time from the requests that count, and none of
// their connections.
func TestHeyLeavesOut(t *testing.T) {
	for _, connection := range []string{experiment.ConnectionKept, experiment.ConnectionNew} {
		c := cell("hey")
		c.Warmup, c.Connection = 1, connection
		result, err := adapter.Read(adapter.Job{Cell: c}, os.DirFS("testdata"), adapter.Moment{MonoNs: 1})
		if err != nil || len(result.Requests) != 10 {
			t.Fatalf("%d rows, %v", len(result.Requests), err)
		}
		connections := map[int32]bool{}
		for i, q := range result.Requests {
			lost := i >= 8
			if (q.Error == "error") != lost || lost && (q.Warmup || q.LastByteNs != 0 || q.ScheduledNs != result.Requests[2].ScheduledNs) {
				t.Errorf("row %d of 8 kept and 2 failed: %+v", i+1, q)
			}
			if connection == experiment.ConnectionNew && (q.Index != 1 || connections[q.Connection]) {
				t.Errorf("row %d has no connection of its own: %+v", i+1, q)
			}
			connections[q.Connection] = true
		}
	}
}

// A request of k6 that could not dial follows no other where connections are new.
func TestK6FailedDial(t *testing.T) {
	const text = "metric_name,timestamp,metric_value,error_code,status,extra_tags,metadata\n" +
		"http_reqs,1000000,1.0,,200,,vu=1&iter=0\nhttp_req_connecting,1000000,0.1,,200,,vu=1&iter=0\n" +
		"http_reqs,2000000,1.0,1212,0,,vu=1&iter=1\nhttp_req_connecting,2000000,0,1212,0,,vu=1&iter=1\n"
	c := cell("k6")
	c.Threads, c.Iterations, c.Connection = 1, 2, experiment.ConnectionNew
	result, err := adapter.Read(adapter.Job{Cell: c}, fstest.MapFS{"k6.csv": {Data: []byte(text)}}, adapter.Moment{})
	if err != nil || len(result.Requests) != 2 {
		t.Fatalf("%d rows, %v", len(result.Requests), err)
	}
	if lost := result.Requests[1]; lost.Error != "dial refused" || lost.Connection != 2 || lost.Index != 1 {
		t.Errorf("the one that failed: %+v", lost)
	}
}

func TestLongest(t *testing.T) {
	const second = quantity.Duration(time.Second)
	open := experiment.OpenLoop{Rate: 1000, Arrivals: experiment.ArrivalsConstant, Duration: 60 * second}
	for _, c := range []struct {
		name string
		cell experiment.Cell
		want time.Duration
	}{
		{"closed", experiment.Cell{Threads: 2, Iterations: 8, Warmup: 1, Timeout: 3 * second, Think: second, Ramp: 5 * second}, 45 * time.Second},
		{"open", experiment.Cell{Sender: experiment.Sender{Tool: "k6"}, Threads: 10, OpenLoop: open, Timeout: 30 * second}, 90 * time.Second},
		{"open, by workers that wait", experiment.Cell{Sender: experiment.Sender{Tool: "hey"}, Threads: 10, OpenLoop: open, Timeout: second}, 6060 * time.Second},
		{"by time", experiment.Cell{Threads: 2, OpenLoop: experiment.OpenLoop{Duration: 10 * second}, Timeout: 3 * second}, 13 * time.Second},
		{"longer than any clock runs", experiment.Cell{Threads: 1, Iterations: 1e7, Timeout: 3600 * second}, 876_000 * time.Hour},
	} {
		if got := adapter.Longest(c.cell); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	endless := cell("wrk")
	endless.Iterations, endless.Timeout = 1e7, 3600*second
	i, err := adapter.Plan(adapter.Job{Cell: endless, Target: "10.1.0.1:80"})
	if err != nil || !slices.Contains(i.Args, "86400s") {
		t.Errorf("wrk ends after a day: %q, %v", i.Args, err)
	}
}

// serving is where the workload payload-echo is served on this machine.
func serving(t *testing.T) (target string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	listener, err := workload.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := workload.Handler(workload.PayloadEcho)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- workload.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// carriedOut is what a tool has seen of a job on this machine.
func carriedOut(t *testing.T, job adapter.Job) adapter.Result {
	t.Helper()
	path, err := exec.LookPath(job.Cell.Tool)
	if err != nil {
		t.Skipf("%s is not installed", job.Cell.Tool)
	}
	invocation, err := adapter.Plan(job)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range invocation.Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	began := adapter.Moment{RealNs: clock.Real(), MonoNs: clock.Mono()}
	cmd := exec.CommandContext(t.Context(), path, invocation.Args...)
	cmd.Dir = dir
	said, err := cmd.Output()
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, invocation.Stdout), said, 0o600)); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	result, err := adapter.Read(job, os.DirFS(dir), began)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestReal runs what Debian has against the workload on this machine.
func TestReal(t *testing.T) {
	target := serving(t)
	for _, tool := range []string{"ab", "wrk"} {
		t.Run(tool, func(t *testing.T) {
			c := cell(tool)
			c.Workload, c.Size, c.Iterations = "payload-echo", 100_000, 20
			result := carriedOut(t, adapter.Job{Cell: c, Target: target, Seed: 1})
			if n := result.Total.Requests; n < 40 || n > 41 || result.Total.Errors != 0 || result.Total.DurationNs <= 0 || result.Total.DurationNs > int64(time.Minute) {
				t.Errorf("total %+v", result.Total)
			}
			if tool == "ab" && len(result.Requests) != 40 {
				t.Errorf("%d rows", len(result.Requests))
			}
			for _, q := range result.Requests {
				if since := clock.Mono() - q.ScheduledNs; since < 0 || since > int64(time.Minute) || q.ResponseNs() < 0 {
					t.Errorf("%+v", q)
				}
			}
		})
	}
}
