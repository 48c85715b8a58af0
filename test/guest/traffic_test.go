package guest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// flow is a run of numbered UDP packets from one node to another.
type flow struct {
	from, to node
	count    int
	// size of a packet's payload, in bytes; small where 0.
	size int
	// gap between two sends; back to back where 0.
	gap time.Duration
	// segments of one super-packet; 1 where 0. The gap is between super-packets.
	segments int
	// urgent has the sender run before the emulator's own thread: on the guest's
	// one core a packet may else wait between its stamp and the link. The gap
	// must leave the kernel time for its softirqs.
	urgent bool
}

// headers of a UDP packet as an Ethernet frame, in bytes.
const headers = 14 + 20 + 8

// arrival is one packet that came through.
type arrival struct {
	sequence int
	delay    time.Duration
	at       time.Time
}

// quiet is how long nothing has come in when a flow is over.
const quiet = 300 * time.Millisecond

// run sends the flow and returns the packets as they arrived. Both ends have
// one clock; the receiver's is the kernel's stamp.
func (f flow) run(t *testing.T) []arrival {
	t.Helper()
	f.size, f.segments = max(f.size, 16), max(f.segments, 1)
	sender, receiver := f.from.socket(t), f.to.socket(t)
	must(t, unix.SetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20))
	must(t, unix.SetsockoptInt(sender, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20))
	must(t, unix.SetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	name, err := unix.Getsockname(receiver)
	must(t, err)
	must(t, unix.Connect(sender, name))
	if f.segments > 1 {
		must(t, unix.SetsockoptInt(sender, unix.SOL_UDP, unix.UDP_SEGMENT, f.size))
	}
	sent := make([]time.Time, f.count)
	ended := make(chan error, 1)
	go func() { ended <- inThread(func() error { return f.send(sender, sent) }) }()
	arrivals := f.receive(t, receiver, sent)
	must(t, <-ended)
	return arrivals
}

func (f flow) send(fd int, sent []time.Time) error {
	if f.urgent {
		const priority = 60
		attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
		if err := unix.SchedSetAttr(0, attr, 0); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	packet := make([]byte, f.size*f.segments)
	start := time.Now()
	for i := 0; i < f.count; i += f.segments {
		turn := start.Add(time.Duration(i/f.segments) * f.gap)
		for left := time.Until(turn); left > 0; left = time.Until(turn) {
			span := unix.NsecToTimespec(int64(left))
			_ = unix.Nanosleep(&span, nil) // a signal may end it early
		}
		for j := range f.segments {
			binary.NativeEndian.PutUint32(packet[j*f.size:], uint32(i+j))
			sent[i+j] = time.Now()
		}
		if _, err := unix.Write(fd, packet); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

func (f flow) receive(t *testing.T, fd int, sent []time.Time) []arrival {
	t.Helper()
	timeout := unix.NsecToTimeval(int64(quiet + f.gap))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout))
	packet, control := make([]byte, 64<<10), make([]byte, 128)
	var arrivals []arrival
	for {
		_, n, _, _, err := unix.Recvmsg(fd, packet, control, 0)
		if errors.Is(err, unix.EAGAIN) {
			return arrivals
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		must(t, err)
		messages, err := unix.ParseSocketControlMessage(control[:n])
		must(t, err)
		stamp := messages[0].Data
		at := time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
		sequence := int(binary.NativeEndian.Uint32(packet))
		arrivals = append(arrivals, arrival{sequence: sequence, at: at, delay: at.Sub(sent[sequence])})
	}
}

// quantile of the delays.
func quantile(arrivals []arrival, q float64) time.Duration {
	delays := make([]time.Duration, 0, len(arrivals))
	for _, a := range arrivals {
		delays = append(delays, a.delay)
	}
	slices.Sort(delays)
	return delays[int(q*float64(len(delays)-1))]
}

// overtaken counts the packets that arrived after one that was sent later.
func overtaken(arrivals []arrival) int {
	last, n := -1, 0
	for _, a := range arrivals {
		if a.sequence < last {
			n++
		}
		last = max(last, a.sequence)
	}
	return n
}
