// Package oneway times single packets: a talker sends UDP at a fixed cycle, a
// listener on the same machine takes the kernel's arrival times, and the
// difference is the way between them. Both clocks are CLOCK_REALTIME, so two
// machines would need PTP; it neither disciplines clocks nor retransmits. Start
// at Talk and Listen; packet.go is the format.
package oneway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
)

// ErrSpec is returned for a TalkSpec or ListenSpec that cannot be run.
var ErrSpec = errors.New("bad one-way probe")

// Bounds of a probe.
const (
	rateMax  = 100_000
	countMax = 10_000_000
	flowsMax = 1000
	// priorityMax is what SO_PRIORITY takes of 802.1Q.
	priorityMax = 7
)

// spinNs is how long before a cycle the talker wakes up and spins. It covers
// the timer slack (50 µs) and the wake-up of an idle core.
const spinNs = 120_000

// How a talker has a packet leave at its time.
const (
	// Now sends at the end of a spin, and stamps the packet with the time just before.
	// All others stamp it with the time that was planned.
	Now = "now"
	// Spin and Sleep send at the end of one, Txtime hands the packet over with its time.
	Spin   = "spin"
	Sleep  = "sleep"
	Txtime = "txtime"
)

// TalkSpec says what to send.
type TalkSpec struct {
	// Target is the listener's HOST:PORT.
	Target string
	// Rate is packets per second, 1 to 100000. Above about 8000 a talker that spins does
	// so all the time and takes a core.
	Rate int
	// Count of packets, up to 10 million.
	Count int
	// Size of the UDP payload in bytes, SizeMin to SizeMax.
	Size int
	// Sends is one of the ways above; empty is Now. Lead is how long before its time a
	// packet is handed over, of Txtime.
	Sends string
	Lead  time.Duration
	// Flow of the packets, from 0, and their SO_PRIORITY.
	Flow, Priority int
}

// Talked is what became of the sends.
type Talked struct {
	// Sent packets; Refused are those that the kernel did not take, for want of
	// a listener or of buffers. They use up a sequence number and are lost.
	Sent    int `json:"sent"`
	Refused int `json:"refused"`
	// LateMaxNs is how far after its moment the latest packet was handed over.
	LateMaxNs int64 `json:"late_max_ns"`
}

// Talk sends one packet per cycle. A packet that is late is sent at once and
// the cycle goes on unmoved, so the lateness of one does not add to the next.
// When ctx ends it stops within a cycle, and the error is ctx's cause.
func Talk(ctx context.Context, s TalkSpec) (Talked, error) {
	if s.Sends == "" {
		s.Sends = Now
	}
	if err := s.check(); err != nil {
		return Talked{}, err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return Talked{}, err
	}
	defer func() { _ = conn.Close() }() // it only sends
	// A thread of its own: no other goroutine runs between the spin and the send.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var t Talked
	packet := make([]byte, s.Size)
	toReal, toTAI := clock.Real()-clock.Mono(), clock.TAI()-clock.Mono()
	start := clock.Mono() + int64(s.Lead) + spinNs
	for i := range int64(s.Count) {
		due := start + i*int64(time.Second)/int64(s.Rate)
		header{flow: s.Flow, sequence: i, sentNs: due + toReal}.put(packet)
		late, err := s.wait(due)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return t, err
		}
		t.LateMaxNs = max(t.LateMaxNs, late)
		if s.Sends == Now {
			header{flow: s.Flow, sequence: i, sentNs: clock.Real()}.put(packet)
		}
		switch err := s.send(conn, packet, due+toTAI); {
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

// dial opens the socket with its options.
func (s TalkSpec) dial(ctx context.Context) (*net.UDPConn, error) {
	var optionErr error
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		err := raw.Control(func(fd uintptr) { optionErr = s.options(int(fd)) }) //nolint:gosec // a descriptor
		return errors.Join(err, optionErr)
	}}
	conn, err := d.DialContext(ctx, "udp", s.Target)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil // as "udp" always gives
}

func (s TalkSpec) options(fd int) error {
	if s.Priority > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, s.Priority); err != nil {
			return fmt.Errorf("set SO_PRIORITY: %w", err)
		}
	}
	if s.Sends != Txtime {
		return nil
	}
	var txtime [8]byte // struct sock_txtime: the clock, and no flags
	binary.NativeEndian.PutUint32(txtime[:], unix.CLOCK_TAI)
	if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_TXTIME, string(txtime[:])); err != nil {
		return fmt.Errorf("set SO_TXTIME: %w", err)
	}
	return nil
}

// wait returns when a packet that is due is to be handed over, and how long after that.
func (s TalkSpec) wait(due int64) (late int64, err error) {
	switch s.Sends {
	case Txtime:
		due -= int64(s.Lead)
		fallthrough
	case Sleep:
		err = SleepUntil(due)
		return clock.Mono() - due, err
	}
	return waitUntil(due)
}

// send hands a packet over, with its time where the talker does that.
func (s TalkSpec) send(conn *net.UDPConn, packet []byte, txtimeNs int64) error {
	if s.Sends != Txtime {
		_, err := conn.Write(packet)
		return err
	}
	control := make([]byte, unix.CmsgSpace(8))
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(control))) //nolint:gosec // as cmsg(3) has it
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_TXTIME
	h.SetLen(unix.CmsgLen(8))
	binary.NativeEndian.PutUint64(control[unix.CmsgLen(0):], uint64(txtimeNs))
	_, _, err := conn.WriteMsgUDP(packet, control, nil)
	return err
}

func (s TalkSpec) check() error {
	switch {
	case s.Rate < 1 || s.Rate > rateMax:
		return fmt.Errorf("%w: rate %d lies outside 1 to %d per second", ErrSpec, s.Rate, rateMax)
	case s.Count < 1 || s.Count > countMax:
		return fmt.Errorf("%w: count %d lies outside 1 to %d", ErrSpec, s.Count, countMax)
	case s.Size < SizeMin || s.Size > SizeMax:
		return fmt.Errorf("%w: size %d lies outside %d to %d bytes", ErrSpec, s.Size, SizeMin, SizeMax)
	case !slices.Contains([]string{Now, Spin, Sleep, Txtime}, s.Sends):
		return fmt.Errorf("%w: packets are sent %s, %s, %s or %s, not %q", ErrSpec, Now, Spin, Sleep, Txtime, s.Sends)
	case s.Lead < 0 || s.Lead > time.Minute:
		return fmt.Errorf("%w: lead %s lies outside 0s to 1m", ErrSpec, s.Lead)
	case s.Flow < 0 || s.Flow >= flowsMax:
		return fmt.Errorf("%w: flow %d lies outside 0 to %d", ErrSpec, s.Flow, flowsMax-1)
	case s.Priority < 0 || s.Priority > priorityMax:
		return fmt.Errorf("%w: priority %d lies outside 0 to %d", ErrSpec, s.Priority, priorityMax)
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
