package oracle

import (
	"slices"
	"time"
)

// initialWindow in segments (RFC 6928 §2).
const initialWindow = 10

// timeoutLeast is what Linux adds to the round trip for its retransmission timeout,
// when that hardly varies (tcp_rto_min).
const timeoutLeast = 200 * time.Millisecond

// Congestion controls whose slow start is known.
const (
	cubic = "cubic"
	reno  = "reno"
	bbr   = "bbr"
)

// ramp is what slow start costs.
type ramp struct {
	// rounds in which the sender waited, for wait altogether.
	rounds int
	wait   time.Duration
}

// slowStart of a request and its answer, from the windows that each begins with;
// the longer one where they go on at the same time.
func (m model) slowStart(window func(message) int) ramp {
	if !m.tcp() {
		return ramp{}
	}
	request := slowStart(m.request, window(m.request), m.rtt(), m.there)
	answer := slowStart(m.answer, window(m.answer), m.rtt(), m.back)
	switch {
	case !m.streams():
		return ramp{request.rounds + answer.rounds, request.wait + answer.wait}
	case request.wait > answer.wait:
		return request
	}
	return answer
}

// slowStart sends a message by windows that double. After each the sender waits
// until the first segment of it is acknowledged: a round trip and the segment's
// own time on the slowest link, less what the window took onto that link. It
// waits no more once the window covers that.
func slowStart(m message, window int, rtt time.Duration, w way) ramp {
	var r ramp
	for sent := window; sent < m.segments; sent += window {
		idle := rtt
		if len(w.rates) > 0 {
			idle -= onto((window-1)*m.frame, slices.Min(w.rates))
		}
		if idle <= 0 {
			break
		}
		r.rounds++
		r.wait += idle
		window *= 2
	}
	return r
}

// timeout is the retransmission timeout of a connection whose round trip varies
// little.
func (m model) timeout() time.Duration { return m.rtt() + timeoutLeast }

// restarts reports a congestion control that starts anew after an idle time: all
// of Linux but those that set the rate by themselves.
func (m model) restarts() bool { return m.congestion != bbr }

// windowAfter is the window with which a message begins on a connection whose
// sender last sent so long ago. Before, the window let the whole message
// through; Linux halves it for every timeout that has passed, down to the
// initial one (tcp_cwnd_restart).
func (m model) windowAfter(idle time.Duration) func(message) int {
	return func(sent message) int {
		window := max(initialWindow, sent.segments)
		if !m.restarts() {
			return window
		}
		for idle := idle - m.timeout(); idle > 0 && window > initialWindow; idle -= m.timeout() {
			window = max(initialWindow, window/2)
		}
		return window
	}
}
