// Package progress shows how a run goes on: as lines, as a table that follows it on a
// terminal, or as events for programs. Start at New.
package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
)

// New shows how a run of these cells goes on: as events where JSON is
// asked for, as a table that follows the run on a terminal, else as lines.
func New(env verb.Env, now func() time.Time, cells []experiment.Cell, asJSON bool) run.Progress {
	switch {
	case asJSON:
		return &events{out: json.NewEncoder(env.Stdout), now: now, running: running{}}
	case console.IsTerminal(env.Stderr):
		size := func() (rows, columns int) {
			w, err := unix.IoctlGetWinsize(int(env.Stderr.Fd()), unix.TIOCGWINSZ)
			if err != nil || w.Row == 0 {
				return rowsDefault, columnsDefault
			}
			return int(w.Row), int(w.Col)
		}
		return &live{w: env.Stderr, size: size, cells: cells, running: running{}, estimates: map[string]measure.Estimate{}}
	}
	return lines{env.Stderr}
}

// turnText is "[ 3/24] CELL, repetition 1, 12s left".
func turnText(index, total int, turn run.Turn, left time.Duration) string {
	return fmt.Sprintf("[%*d/%d] %s, repetition %d, %s left",
		len(fmt.Sprint(total)), index, total, turn.Cell, turn.Repetition, left.Round(time.Second))
}

// lines is a line for each turn.
type lines struct{ w io.Writer }

// Turn prints where the run stands and what time is left.
func (l lines) Turn(index, total int, turn run.Turn, left time.Duration) {
	l.Note(turnText(index, total, turn, left))
}

// Done prints nothing: the next line says it.
func (lines) Done(run.Turn, *measure.Gathered) {}

// Ended prints nothing.
func (lines) Ended() {}

// Note prints a line. Progress that cannot be shown stops nothing.
func (l lines) Note(text string) { _, _ = fmt.Fprintln(l.w, text) }

// running holds what was measured so far, by the ID of the cell.
type running map[string][]*measure.Gathered

// add takes a repetition and estimates the cell's median anew.
func (r running) add(turn run.Turn, g *measure.Gathered) measure.Estimate {
	id := turn.Cell.ID()
	r[id] = append(r[id], g)
	return measure.Pool(r[id]).Values.Median(rand.New(rand.NewPCG(1, 1)))
}

// Size of a terminal that does not tell, and the rows of the live table that
// are not cells.
const (
	rowsDefault, columnsDefault = 24, 80
	rowsBeside                  = 3
)

// live is a table of the cells with their running medians, written over as the
// run goes on, and gone at its end: the result has a table of its own.
type live struct {
	w         io.Writer
	size      func() (rows, columns int)
	cells     []experiment.Cell
	running   running
	estimates map[string]measure.Estimate
	turn      string
	now       string // the ID of the cell under way
	drawn     int    // lines on the screen
}

// Turn shows which cell is under way.
func (l *live) Turn(index, total int, turn run.Turn, left time.Duration) {
	l.turn, l.now = turnText(index, total, turn, left), turn.Cell.ID()
	l.draw()
}

// Done shows the cell's median so far.
func (l *live) Done(turn run.Turn, g *measure.Gathered) {
	l.estimates[turn.Cell.ID()] = l.running.add(turn, g)
	l.draw()
}

// Ended takes the table away.
func (l *live) Ended() { l.clear() }

// Note leaves a line above the table.
func (l *live) Note(text string) {
	l.clear()
	_, _ = fmt.Fprintln(l.w, text) // progress that cannot be shown stops nothing
	if l.turn != "" {
		l.draw()
	}
}

func (l *live) clear() {
	if l.drawn > 0 {
		_, _ = fmt.Fprintf(l.w, "\x1b[%dA\x1b[J", l.drawn)
		l.drawn = 0
	}
}

func (l *live) draw() {
	rows, columns := l.size()
	text := []string{fmt.Sprintf("%12s %-20s %4s  %s", "median ms", "95% interval", "reps", "cell")}
	for _, cell := range l.shown(rows - rowsBeside) {
		text = append(text, l.row(cell))
	}
	text = append(text, l.turn)
	var out strings.Builder
	for _, line := range text {
		// A line that wraps would be counted as one and written over by half.
		out.WriteString(cut(line, columns-1) + "\n")
	}
	l.clear()
	_, _ = io.WriteString(l.w, out.String())
	l.drawn = len(text)
}

// shown are the cells that fit: all, or as many around the one under way.
func (l *live) shown(most int) []experiment.Cell {
	most = max(most, 1)
	if len(l.cells) <= most {
		return l.cells
	}
	at := 0
	for i, cell := range l.cells {
		if cell.ID() == l.now {
			at = i
		}
	}
	from := min(max(at-most/2, 0), len(l.cells)-most)
	return l.cells[from : from+most]
}

func (l *live) row(cell experiment.Cell) string {
	id := cell.ID()
	mark := " "
	if id == l.now {
		mark = ">"
	}
	e, ok := l.estimates[id]
	if !ok || e.N == 0 {
		return fmt.Sprintf("%12s %-20s %4d %s%s", "–", "", len(l.running[id]), mark, cell)
	}
	interval := fmt.Sprintf("[%.3f, %.3f]", e.Low/1e6, e.High/1e6)
	return fmt.Sprintf("%12.3f %-20s %4d %s%s", e.Value/1e6, interval, len(l.running[id]), mark, cell)
}

func cut(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return s
}

// events is a JSON object a line on stdout, for programs: "turn" before each
// repetition, "repetition" after it with the cell's running median, "note",
// "ended". The last line is "result".
type events struct {
	out     *json.Encoder
	now     func() time.Time
	running running
}

// event is one line. Times are milliseconds, LeftS seconds.
type event struct {
	Event      string    `json:"event"`
	At         time.Time `json:"at"`
	Index      int       `json:"index,omitempty"`
	Total      int       `json:"total,omitempty"`
	ID         string    `json:"id,omitempty"`
	Cell       string    `json:"cell,omitempty"`
	Repetition int       `json:"repetition,omitempty"`
	LeftS      float64   `json:"left_s,omitempty"`
	Requests   int       `json:"requests,omitempty"`
	Errors     int       `json:"errors,omitempty"`
	MedianMs   float64   `json:"median_ms,omitempty"`
	Running    *estimate `json:"running,omitempty"`
	Text       string    `json:"text,omitempty"`
	// Result is what report prints with --json.
	Result json.RawMessage `json:"result,omitempty"`
}

// estimate is the cell's median over the repetitions so far.
type estimate struct {
	MedianMs    float64 `json:"median_ms"`
	LowMs       float64 `json:"low_ms"`
	HighMs      float64 `json:"high_ms"`
	Repetitions int     `json:"repetitions"`
}

// say writes a line; a reader that has gone stops nothing.
func (e *events) say(v event) {
	v.At = e.now()
	_ = e.out.Encode(v)
}

// Turn says which repetition begins.
func (e *events) Turn(index, total int, turn run.Turn, left time.Duration) {
	e.say(event{
		Event: "turn", Index: index, Total: total, ID: turn.Cell.ID(), Cell: turn.Cell.String(),
		Repetition: turn.Repetition, LeftS: left.Seconds(),
	})
}

// Done says what a repetition measured, and the cell so far.
func (e *events) Done(turn run.Turn, g *measure.Gathered) {
	summary, so := g.Summary(), e.running.add(turn, g)
	v := event{
		Event: "repetition", ID: turn.Cell.ID(), Cell: turn.Cell.String(), Repetition: turn.Repetition,
		Requests: summary.Requests, Errors: summary.Errors, MedianMs: float64(summary.Times.Median) / 1e6,
	}
	if so.N > 0 { // no JSON holds NaN
		v.Running = &estimate{so.Value / 1e6, so.Low / 1e6, so.High / 1e6, so.Repetitions}
	}
	e.say(v)
}

// Ended says that no repetition follows.
func (e *events) Ended() { e.say(event{Event: "ended"}) }

// Note passes on what the user should know.
func (e *events) Note(text string) { e.say(event{Event: "note", Text: text}) }

// Result says what the run amounts to. Here an error tells.
func Result(w io.Writer, now func() time.Time, input report.Input) error {
	var document bytes.Buffer
	if err := report.JSON(&document, input); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(event{Event: "result", At: now(), Result: document.Bytes()})
}
