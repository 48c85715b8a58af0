// Package flow sends numbered UDP packets from one network namespace to another,
// and tells which of them arrived, when, and in which state. The namespaces are
// the nodes of a small WAN, on which a link back end can be set. It judges
// nothing. Start at Make for the network and at Flow.Run.
package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
)

// Flow is a run of packets from one node to another.
type Flow struct {
	From, To Node
	// Count of packets.
	Count int
	// Size of a packet's payload, in bytes, a multiple of 4; 16 where 0.
	Size int
	// Gap between two sends; back to back where 0.
	Gap time.Duration
	// Segments of one super-packet; 1 where 0. The gap is between super-packets.
	Segments int
	// Urgent has the sender run before the emulator's own thread: on one core a
	// packet may else wait between its stamp and the link. The gap must leave the
	// kernel time for its softirqs.
	Urgent bool
	// Bare packets have no UDP checksum, so that one with a wrong bit arrives.
	Bare bool
}

const (
	// Headers of a UDP packet as an Ethernet frame, in bytes.
	Headers = 14 + 20 + 8
	// quiet is how long nothing has come in when a flow is over.
	quiet = 300 * time.Millisecond
	// word is the size of the sequence number, which fills the payload.
	word = 4
)

// Arrival is one packet that came through.
type Arrival struct {
	// Sequence number of the packet, from 0; Damaged where its bytes or its sender
	// are not those that were sent. A damaged packet has no delay.
	Sequence int
	Delay    time.Duration
	At       time.Time
}

// Damaged stands for the sequence number of a packet that is not what was sent.
const Damaged = -1

// Run sends the flow and returns the packets as they arrived. Both ends have
// one clock; the receiver's is the kernel's stamp.
func (f Flow) Run() (_ Arrivals, err error) {
	const size = 16
	if f.Size == 0 {
		f.Size = size
	}
	f.Segments = max(f.Segments, 1)
	sender, err := f.From.socket()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(sender)) }()
	receiver, err := f.To.socket()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(receiver)) }()
	if err := f.prepare(sender, receiver); err != nil {
		return nil, fmt.Errorf("prepare a flow: %w", err)
	}
	sent := make([]time.Time, f.Count)
	ended := make(chan error, 1)
	go func() { ended <- thread.Do(func() error { return f.send(sender, sent) }) }()
	arrivals, receiveErr := f.receive(sender, receiver)
	if err := errors.Join(<-ended, receiveErr); err != nil {
		return nil, err
	}
	for i, a := range arrivals {
		if a.Sequence != Damaged {
			arrivals[i].Delay = a.At.Sub(sent[a.Sequence])
		}
	}
	return arrivals, nil
}

// prepare sets the sockets' options and connects the sender.
func (f Flow) prepare(sender, receiver int) error {
	const buffer = 64 << 20
	timeout := unix.NsecToTimeval(int64(quiet + f.Gap))
	name, err := unix.Getsockname(receiver)
	err = errors.Join(err,
		unix.SetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(receiver, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptInt(sender, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer),
	)
	if err != nil {
		return err
	}
	if f.Bare {
		err = unix.SetsockoptInt(sender, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
	}
	if f.Segments > 1 {
		err = errors.Join(err, unix.SetsockoptInt(sender, unix.SOL_UDP, unix.UDP_SEGMENT, f.Size))
	}
	return errors.Join(err, unix.Connect(sender, name))
}

func (f Flow) send(fd int, sent []time.Time) error {
	if f.Urgent {
		const priority = 60
		attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
		if err := unix.SchedSetAttr(0, attr, 0); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	packet := make([]byte, f.Size*f.Segments)
	start := time.Now()
	for i := 0; i < f.Count; i += f.Segments {
		for j := range f.Segments {
			fill(packet[j*f.Size:][:f.Size], i+j)
		}
		f.sleepUntil(start.Add(time.Duration(i/f.Segments) * f.Gap))
		now := time.Now()
		for j := range f.Segments {
			sent[i+j] = now
		}
		if _, err := unix.Write(fd, packet); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// sleepUntil a time. An urgent thread does so without a word to Go's scheduler: one that came
// back to it while a thread of no priority had a hand on it would turn, at one core, until the
// kernel throttled it, for nearly a second.
func (f Flow) sleepUntil(turn time.Time) {
	sleep := unix.Syscall
	if f.Urgent {
		sleep = unix.RawSyscall
	}
	for left := time.Until(turn); left > 0; left = time.Until(turn) {
		span := unix.NsecToTimespec(int64(left))
		_, _, _ = sleep(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&span)), 0, 0) // a signal may end it early
	}
}

func (f Flow) receive(sender, fd int) (Arrivals, error) {
	from, err := unix.Getsockname(sender)
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	port := from.(*unix.SockaddrInet4).Port
	packet, control := make([]byte, 64<<10), make([]byte, 128)
	var arrivals Arrivals
	for {
		n, controlled, _, from, err := unix.Recvmsg(fd, packet, control, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return arrivals, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, fmt.Errorf("receive: %w", err)
		}
		at, err := stamp(control[:controlled])
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		a := Arrival{Sequence: f.sequence(packet[:n]), At: at}
		if from.(*unix.SockaddrInet4).Port != port {
			a.Sequence = Damaged
		}
		arrivals = append(arrivals, a)
	}
}

// fill repeats a packet's number in its payload.
func fill(payload []byte, sequence int) {
	binary.NativeEndian.PutUint32(payload, uint32(sequence))
	for done := word; done < len(payload); done *= 2 {
		copy(payload[done:], payload[:done])
	}
}

// stamp is when the kernel took a packet in.
func stamp(control []byte) (time.Time, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, err
	}
	const fields = 2 * 8 // struct timespec
	if len(messages) == 0 || len(messages[0].Data) < fields {
		return time.Time{}, errors.New("a packet without the kernel's stamp")
	}
	b := messages[0].Data
	return time.Unix(int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))), nil
}

// sequence reads a payload that was filled.
func (f Flow) sequence(payload []byte) int {
	if len(payload) != f.Size {
		return Damaged
	}
	first := binary.NativeEndian.Uint32(payload)
	for i := 0; i < len(payload); i += word {
		if binary.NativeEndian.Uint32(payload[i:]) != first {
			return Damaged
		}
	}
	if int64(first) >= int64(f.Count) {
		return Damaged
	}
	return int(first)
}
