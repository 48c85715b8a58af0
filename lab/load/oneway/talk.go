// Package oneway times single packets: a talker sends UDP at a fixed cycle, a
// listener on the same machine takes the kernel's arrival times, and the
// difference is the way between them. Both clocks are CLOCK_REALTIME, so two
// machines would need PTP; it neither disciplines clocks nor retransmits. Start
// at Talk and Listen; packet.go is the format.
package oneway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/clock"
)

// ErrSpec is returned for a TalkSpec or ListenSpec that cannot be run.
var ErrSpec = errors.New("bad one-way probe")

// Bounds of a probe.
const (
	rateMax  = 100_000
	countMax = 10_000_000
	flowsMax = 1000
)

// spinNs is how long before a cycle the talker wakes up and spins. It covers
// the timer slack (50 µs) and the wake-up of an idle core.
const spinNs = 120_000

// TalkSpec says what to send.
type TalkSpec struct {
	// Target is the listener's HOST:PORT.
	Target string
	// Rate is packets per second, 1 to 100000. Above about 8000 the talker
	// spins all the time and takes a core.
	Rate int
	// Count of packets, up to 10 million.
	Count int
	// Size of the UDP payload in bytes, SizeMin to SizeMax.
	Size int
}

// Talked is what became of the sends.
type Talked struct {
	// Sent packets; Refused are those that the kernel did not take, for want of
	// a listener or of buffers. They use up a sequence number and are lost.
	Sent    int `json:"sent"`
	Refused int `json:"refused"`
	// LateMaxNs is how far after its cycle the latest packet was sent.
	LateMaxNs int64 `json:"late_max_ns"`
}

// Talk sends one packet per cycle. A packet that is late is sent at once and
// the cycle goes on unmoved, so the lateness of one does not add to the next.
// When ctx ends it stops within a cycle, and the error is ctx's cause.
func Talk(ctx context.Context, s TalkSpec) (Talked, error) {
	if err := s.check(); err != nil {
		return Talked{}, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", s.Target)
	if err != nil {
		return Talked{}, err
	}
	defer conn.Close()
	// A thread of its own: no other goroutine runs between the spin and the send.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var t Talked
	packet := make([]byte, s.Size)
	start := clock.Mono() + spinNs
	for i := range int64(s.Count) {
		due := start + i*int64(time.Second)/int64(s.Rate)
		late, err := waitUntil(due)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return t, err
		}
		t.LateMaxNs = max(t.LateMaxNs, late)
		header{sequence: i, sentNs: clock.Real()}.put(packet)
		switch _, err := conn.Write(packet); {
		case err == nil:
			t.Sent++
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOBUFS):
			t.Refused++
		default:
			return t, fmt.Errorf("send packet %d: %w", i, err)
		}
	}
	return t, nil
}

func (s TalkSpec) check() error {
	switch {
	case s.Rate < 1 || s.Rate > rateMax:
		return fmt.Errorf("%w: rate %d lies outside 1 to %d per second", ErrSpec, s.Rate, rateMax)
	case s.Count < 1 || s.Count > countMax:
		return fmt.Errorf("%w: count %d lies outside 1 to %d", ErrSpec, s.Count, countMax)
	case s.Size < SizeMin || s.Size > SizeMax:
		return fmt.Errorf("%w: size %d lies outside %d to %d bytes", ErrSpec, s.Size, SizeMin, SizeMax)
	}
	return nil
}

// waitUntil returns at or after due (CLOCK_MONOTONIC ns) and says how many ns
// after. It sleeps, and spins over the rest.
func waitUntil(due int64) (late int64, err error) {
	if err := SleepUntil(due - spinNs); err != nil {
		return 0, err
	}
	for {
		if now := clock.Mono(); now >= due {
			return now - due, nil
		}
	}
}
