package progress

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/sample"
)

// cellsOf names cells by their scenario.
func cellsOf(scenarios ...string) []experiment.Cell {
	var cells []experiment.Cell
	for _, name := range scenarios {
		cells = append(cells, experiment.Cell{
			Scenario: experiment.Scenario{Name: name}, System: "direct", Workload: "hello-world", Threads: 1, Connection: "kept",
		})
	}
	return cells
}

// took is a repetition of requests with these response times in ms.
func took(ms ...int64) *measure.Gathered {
	var requests []sample.Request
	for i, t := range ms {
		requests = append(requests, sample.Request{Index: 2, ScheduledNs: int64(i) * 1e9, LastByteNs: int64(i)*1e9 + t*1e6})
	}
	return measure.Gather(requests)
}

// drive has a run of two cells reported, the second of which is under way.
func drive(p run.Progress, cells []experiment.Cell) {
	p.Turn(9, 10, run.Turn{Cell: cells[0], Repetition: 2}, 1499*time.Millisecond)
	p.Done(run.Turn{Cell: cells[0], Repetition: 2}, took(3, 5, 4))
	p.Note("a note")
	p.Turn(10, 10, run.Turn{Cell: cells[1], Repetition: 2}, 0)
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	p := lines{&out}
	drive(p, cellsOf("near", "far"))
	p.Ended()
	const want = "[ 9/10] near/direct/hello-world 1 thread kept, repetition 2, 1s left\na note\n" +
		"[10/10] far/direct/hello-world 1 thread kept, repetition 2, 0s left\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// screen is what a terminal shows after text with the two sequences that live
// uses: cursor up, and erase what follows.
func screen(text string) []string {
	var shown []string
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			up, after, _ := strings.Cut(rest, "A\x1b[J")
			var n int
			if err := json.Unmarshal([]byte(up), &n); err != nil || n > len(shown) {
				return []string{"cannot go up " + up}
			}
			shown, text = shown[:len(shown)-n], after
			continue
		}
		var line string
		line, text, _ = strings.Cut(text, "\n")
		shown = append(shown, line)
	}
	return shown
}

func TestLiveTableFollowsTheRun(t *testing.T) {
	var out bytes.Buffer
	cells := cellsOf("near", "far")
	l := &live{
		w: &out, size: func() (int, int) { return 24, 200 }, cells: cells, running: running{}, estimates: map[string]measure.Estimate{},
	}
	drive(l, cells)
	want := []string{
		"a note",
		"   median ms 95% interval         reps  cell",
		"       4.000 [3.000, 5.000]          1  near/direct/hello-world 1 thread kept",
		"           –                         0 >far/direct/hello-world 1 thread kept",
		"[10/10] far/direct/hello-world 1 thread kept, repetition 2, 0s left",
	}
	if got := screen(out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	l.Ended()
	if got := screen(out.String()); len(got) != 1 || got[0] != "a note" {
		t.Errorf("at the end there stands\n%s", strings.Join(got, "\n"))
	}
}

func TestLiveTableFitsTheTerminal(t *testing.T) {
	var out bytes.Buffer
	names := strings.Fields("a b c d e f g h i j k l m n o p q r s t")
	cells := cellsOf(names...)
	const rows, columns = 8, 60
	l := &live{
		w: &out, size: func() (int, int) { return rows, columns }, cells: cells, running: running{}, estimates: map[string]measure.Estimate{},
	}
	for i, cell := range cells {
		out.Reset()
		l.drawn = 0
		l.Turn(i+1, len(cells), run.Turn{Cell: cell, Repetition: 1}, time.Minute)
		got := screen(out.String())
		if len(got) > rows-1 {
			t.Errorf("%d lines on %d rows", len(got), rows)
		}
		under := false
		for _, line := range got {
			under = under || strings.Contains(line, ">"+names[i])
			if n := len([]rune(line)); n >= columns {
				t.Errorf("a line of %d on %d columns: %q", n, columns, line)
			}
		}
		if !under {
			t.Errorf("cell %s is under way and not shown", names[i])
		}
	}
}

func TestEvents(t *testing.T) {
	var out bytes.Buffer
	p := &events{out: json.NewEncoder(&out), now: func() time.Time { return time.Unix(7, 0).UTC() }, running: running{}}
	cells := cellsOf("near", "far")
	drive(p, cells)
	p.Done(run.Turn{Cell: cells[1], Repetition: 2}, measure.Gather(nil))
	p.Ended()
	near, far := cells[0].ID(), cells[1].ID()
	const at, label = `"at":"1970-01-01T00:00:07Z"`, "/direct/hello-world 1 thread kept"
	want := []string{
		`{"event":"turn",` + at + `,"index":9,"total":10,"id":"` + near + `","cell":"near` + label + `","repetition":2,"left_s":1.499}`,
		`{"event":"repetition",` + at + `,"id":"` + near + `","cell":"near` + label + `","repetition":2,"requests":3,"median_ms":4,` +
			`"running":{"median_ms":4,"low_ms":3,"high_ms":5,"repetitions":1}}`,
		`{"event":"note",` + at + `,"text":"a note"}`,
		`{"event":"turn",` + at + `,"index":10,"total":10,"id":"` + far + `","cell":"far` + label + `","repetition":2}`,
		`{"event":"repetition",` + at + `,"id":"` + far + `","cell":"far` + label + `","repetition":2}`,
		`{"event":"ended",` + at + `}`,
	}
	if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
