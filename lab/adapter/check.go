package adapter

import (
	"errors"
	"fmt"
	"time"

	"skerry.dev/skerry/lab/experiment"
)

// ErrUnknown says that there is no such tool.
var ErrUnknown = errors.New("no such load tool")

// abilities are what a tool can do besides a closed loop of GET and POST on
// connections that are kept.
type abilities struct {
	// warmup requests can be told from those that count.
	warmup bool
	// fresh connections are possible, their dial timed.
	fresh bool
	// open loops at a constant rate are possible, of this duration at least.
	open      bool
	openLeast time.Duration
	// Times are taken in multiples of these; 0 takes none.
	think, ramp, timeout time.Duration
	// timed is the same of how long a closed loop by time lasts.
	timed time.Duration
	// requestsMax is how many requests of a repetition the tool keeps, 0 for all.
	requestsMax int
}

// UnableError says what of a cell its tool cannot do.
type UnableError struct {
	// Tool, and what it Cannot do, as the end of a sentence.
	Tool, Cannot string
	// Key of the load that asks for it.
	Key string
}

// Error is the sentence.
func (e *UnableError) Error() string { return "tool " + e.Tool + " cannot " + e.Cannot }

// Hint says what to do.
func (e *UnableError) Hint() string {
	return "leave " + e.Tool + " out of load.tool, or change load." + e.Key
}

// Unable is what of a cell its tool cannot do. Skerry's own load can do all.
func Unable(c experiment.Cell) (lacks []*UnableError) {
	t, known := tools()[c.Tool]
	if !known {
		return nil
	}
	a := t.abilities()
	for _, is := range []struct {
		asked       bool
		key, cannot string
	}{
		{c.Protocol != "", "protocol", "speak " + c.Speaks() + ", only " + experiment.ProtocolHTTP1},
		{c.Timed() && a.timed == 0, "ratio", "request at several entries, each for as long"},
		{c.Timed() && !multiple(c.Duration.Std(), a.timed), "duration", fmt.Sprintf("go on for %s, only for multiples of %s", c.Duration, a.timed)},
		{c.Rotate > 0, "rotate", "have its threads call one entry after another"},
		{c.Settle > 0, "settle", "leave out the requests of the first " + c.Settle.String()},
		{c.Warmup > 0 && !a.warmup, "warmup", "leave out requests that warm up"},
		{c.Connection == experiment.ConnectionNew && !a.fresh, "connection", "time the dial of a new connection for each request"},
		{c.Rate > 0 && !a.open, "rate", "send at a rate, only in a closed loop"},
		{c.Rate > 0 && a.open && c.Arrivals != experiment.ArrivalsConstant, "arrivals", "send at " + c.Arrivals + " intervals, only at constant ones"},
		{c.Rate > 0 && c.Duration.Std() < a.openLeast, "duration", fmt.Sprintf("send at a rate for %s, only for %s and more", c.Duration, a.openLeast)},
		{c.Think > 0 && a.think == 0, "think", "think between requests"},
		{!multiple(c.Think.Std(), a.think), "think", fmt.Sprintf("think for %s, only for multiples of %s", c.Think, a.think)},
		{c.Ramp > 0 && a.ramp == 0, "ramp", "start its threads one after the other"},
		{!multiple(c.Ramp.Std(), a.ramp), "ramp", fmt.Sprintf("start its threads over %s, only over multiples of %s", c.Ramp, a.ramp)},
		{!multiple(c.Timeout.Std(), a.timeout), "timeout", fmt.Sprintf("time out after %s, only after multiples of %s", c.Timeout, a.timeout)},
		{a.requestsMax > 0 && requests(c) > a.requestsMax, "iterations", fmt.Sprintf("keep %d requests, only %d", requests(c), a.requestsMax)},
	} {
		if is.asked {
			lacks = append(lacks, &UnableError{Tool: c.Tool, Cannot: is.cannot, Key: is.key})
		}
	}
	return lacks
}

// multiple of a unit; a unit of 0 has none to offend against.
func multiple(d, unit time.Duration) bool { return unit == 0 || d%unit == 0 }
