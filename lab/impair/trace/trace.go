// Package trace replays what a link once did, in place of a fixed rate and
// delay: how fast it was at every moment, and how long its packets took. It
// reads the traces of mahimahi (Netravali et al., "Mahimahi: Accurate
// Record-and-Replay for HTTP", USENIX ATC 2015) and one with rates and delays, and
// makes two that look recorded. It moves no packet: Player says when one leaves.
// Start at Open; Read and Model are pure.
package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/textfile"
)

// DeliveryBytes is what one delivery opportunity of a mahimahi trace lets go: a full packet,
// counted as a rate counts it.
const DeliveryBytes = impair.DefaultMTU + impair.EthernetHeader

// Bounds of a trace.
const (
	stepsMax  = 10_000_000
	spanLeast = time.Millisecond
	spanMax   = 24 * time.Hour
	rateMax   = 1e12
	meanLeast = 1 // bit/s: a packet leaves within a day
)

// Trace is what a link did from 0 to Span; after that it begins anew. Either
// Deliveries or Steps are set.
type Trace struct {
	Span time.Duration
	// Deliveries are the moments at which DeliveryBytes could go, in order; several
	// may be equal. What is not used at its moment is lost.
	Deliveries []time.Duration
	// Steps hold from their At to the next one's, the first from 0.
	Steps []Step
}

// Step is a rate and a delay that hold for a while.
type Step struct {
	At time.Duration
	// Rate in bit/s of Ethernet frames; 0 lets nothing go.
	Rate float64
	// Delay is one way, on top of the wait for the rate.
	Delay time.Duration
}

// Open reads the trace of a name that is built in, or of a file.
func Open(name string) (*Trace, error) {
	if t, known := Model(name, Seed); known {
		return t, nil
	}
	data, err := textfile.Read(name)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	t, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	return t, nil
}

// header is the first line of a trace with rates and delays.
const header = "ms,mbit,delay_ms"

// Read reads a trace: lines of milliseconds, each a delivery opportunity of
// mahimahi, or below the header "ms,mbit,delay_ms" lines of a time in ms from
// which on a rate in Mbit/s and a delay in ms hold. Empty lines and lines that
// begin with # say nothing. Errors are a
// *textfile.Error.
func Read(data []byte) (*Trace, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	r := reader{trace: &Trace{}}
	for lines.Scan() {
		r.line++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := r.read(text); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, r.wrong("a trace has short lines of text", "%v", err)
	}
	return r.end()
}

// reader is a trace that is being read.
type reader struct {
	trace *Trace
	line  int
	// rates says that the header was seen, begun that anything was.
	rates, begun bool
}

func (r *reader) wrong(hint, format string, args ...any) error {
	return textfile.Wrong(r.line, hint, format, args...)
}

func (r *reader) read(text string) error {
	first := !r.begun
	r.begun = true
	switch {
	case first && text == header:
		r.rates = true
		return nil
	case len(r.trace.Deliveries)+len(r.trace.Steps) == stepsMax:
		return r.wrong("cut the trace", "the trace has more than %d lines", stepsMax)
	case r.rates:
		return r.step(text)
	}
	return r.delivery(text)
}

func (r *reader) delivery(text string) error {
	const hint = "a line holds the milliseconds of a delivery opportunity, or the first is " + header
	ms, err := strconv.ParseUint(text, 10, 32)
	at := time.Duration(ms) * time.Millisecond
	switch {
	case err != nil:
		return r.wrong(hint, "%.40q is no time", text)
	case at > spanMax:
		return r.wrong("cut the trace", "%s is later than %s", at, spanMax)
	case at < r.trace.Span:
		return r.wrong("sort the lines", "%s comes after %s", at, r.trace.Span)
	}
	r.trace.Deliveries = append(r.trace.Deliveries, at)
	r.trace.Span = at // mahimahi: the last line is the length of the trace
	return nil
}

func (r *reader) step(text string) error {
	fields := strings.Split(text, ",")
	if len(fields) != 3 {
		return r.wrong("write "+header, "%.40q has %d fields, not 3", text, len(fields))
	}
	var values [3]float64
	for i, most := range []float64{spanMax.Seconds() * 1e3, rateMax / 1e6, float64(impair.DelayMax) / 1e6} {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
		if err != nil || !(v >= 0 && v <= most) { // NaN too
			return r.wrong(fmt.Sprintf("write 0 to %g", most), "%.40q is no %s", fields[i], strings.Split(header, ",")[i])
		}
		values[i] = v
	}
	s := Step{At: milliseconds(values[0]), Rate: math.Round(values[1] * 1e6), Delay: milliseconds(values[2])}
	switch n := len(r.trace.Steps); {
	case n == 0 && s.At != 0:
		return r.wrong("begin with 0", "the first line holds from %s on", s.At)
	case n > 0 && s.At <= r.trace.Steps[n-1].At:
		return r.wrong("sort the lines", "%s comes after %s", s.At, r.trace.Steps[n-1].At)
	}
	r.trace.Steps = append(r.trace.Steps, s)
	return nil
}

func milliseconds(v float64) time.Duration { return time.Duration(math.Round(v * 1e6)) }

// end checks the whole. The last step holds as long as the one before it.
func (r *reader) end() (*Trace, error) {
	r.line = 0
	t := r.trace
	if n := len(t.Steps); n > 1 {
		t.Span = 2*t.Steps[n-1].At - t.Steps[n-2].At
	} else if n == 1 {
		t.Span = time.Second
	}
	switch {
	case !r.begun:
		return nil, r.wrong("write milliseconds, or "+header, "the trace is empty")
	case t.Span == 0 || t.bits(t.Span) == 0:
		return nil, r.wrong("give it a moment at which packets can go", "the trace lets nothing go")
	case t.Span < spanLeast:
		return nil, r.wrong(fmt.Sprintf("write %s or more", spanLeast), "the trace is only %s long", t.Span)
	case t.Mean() < meanLeast:
		return nil, r.wrong(fmt.Sprintf("let %d bit/s go or more", meanLeast), "the trace lets only %.2g bit/s go", t.Mean())
	}
	return t, nil
}

// Encode writes a trace as Read takes it.
func (t *Trace) Encode() []byte {
	var b bytes.Buffer
	for _, at := range t.Deliveries {
		fmt.Fprintln(&b, at.Milliseconds())
	}
	if len(t.Steps) > 0 {
		fmt.Fprintln(&b, header)
	}
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "%g,%g,%g\n", float64(s.At)/1e6, s.Rate/1e6, float64(s.Delay)/1e6)
	}
	return b.Bytes()
}

// At is the step that holds at a moment, of any round; of deliveries there is none.
func (t *Trace) At(at time.Duration) Step {
	if len(t.Steps) == 0 {
		return Step{}
	}
	return t.Steps[t.step(at%t.Span)]
}

// step that holds at a moment of the first round.
func (t *Trace) step(at time.Duration) int {
	i, found := slices.BinarySearchFunc(t.Steps, at, func(s Step, at time.Duration) int { return cmp.Compare(s.At, at) })
	if !found {
		i--
	}
	return i
}

// Mean rate in bit/s over the whole span.
func (t *Trace) Mean() float64 { return t.bits(t.Span) / t.Span.Seconds() }

// bits that may go from the beginning to a moment of the first round.
func (t *Trace) bits(until time.Duration) float64 {
	if len(t.Deliveries) > 0 {
		n, _ := slices.BinarySearchFunc(t.Deliveries, until, func(at, until time.Duration) int {
			return cmp.Or(cmp.Compare(at, until), -1) // the first after it
		})
		return float64(n) * DeliveryBytes * 8
	}
	var sum float64
	for i, s := range t.Steps {
		if s.At >= until {
			break
		}
		sum += s.Rate * (min(t.ends(i), until) - s.At).Seconds()
	}
	return sum
}

// ends is when a step ends.
func (t *Trace) ends(i int) time.Duration {
	if i+1 < len(t.Steps) {
		return t.Steps[i+1].At
	}
	return t.Span
}
