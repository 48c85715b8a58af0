package oneway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/sample"
)

// ErrSilence is returned when not one packet arrived.
var ErrSilence = errors.New("no packet arrived")

// bufferBytes is the receive buffer asked for: a pause of the listener must
// not lose packets.
const bufferBytes = 8 << 20

// controlMax holds a timestamp and a drop counter, with room.
const controlMax = 128

// lookEvery bounds how long after the end of a context the listener goes on.
const lookEvery = 100 * time.Millisecond

// ListenSpec says what to wait for.
type ListenSpec struct {
	// Addr is HOST:PORT to listen on; port 0 takes a free one.
	Addr string
	// Flows are the talkers, numbered from 0, and Count the packets that each sends.
	Flows, Count int
	// Idle ends the wait: so long without a packet, the first included.
	Idle time.Duration
	// Ready, if set, is called with the address once packets can arrive.
	Ready func(netip.AddrPort)
}

// check bounds the rows.
func (s ListenSpec) check() error {
	switch {
	case s.Flows < 1 || s.Flows > flowsMax:
		return fmt.Errorf("%w: %d flows lie outside 1 to %d", ErrSpec, s.Flows, flowsMax)
	case s.Count < 1 || s.Count > countMax/s.Flows:
		return fmt.Errorf("%w: count %d lies outside 1 to %d", ErrSpec, s.Count, countMax/s.Flows)
	case s.Idle <= 0:
		return fmt.Errorf("%w: idle %s is not above 0", ErrSpec, s.Idle)
	}
	return nil
}

// Counts are what became of packets.
type Counts struct {
	// Received counts the packets that arrived, each once, and Lost those that did not;
	// Duplicates came again, Reordered after a later one of their flow, and Strays were
	// not of this probe.
	Received   int `json:"received"`
	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Reordered  int `json:"reordered"`
	Strays     int `json:"strays"`
	// Overflowed packets are lost to the listener's own full buffer: they are no loss of
	// the system's.
	Overflowed int `json:"overflowed"`
}

// Heard is what arrived.
type Heard struct {
	// Packets has a row per sequence number, flow by flow. A lost packet has
	// ReceivedNs 0, and SentNs 0 too, as only the talker knows it.
	Packets []sample.OneWay
	Counts
	// BufferBytes of the listener.
	BufferBytes int

	count int
	// latest sequence number of each flow.
	latest []int64
}

// Listen receives until Count packets of each flow have arrived, until none has for
// Idle, or until ctx ends. The rows come beside the cause of ctx's end, and beside
// ErrSilence.
func Listen(ctx context.Context, s ListenSpec) (Heard, error) {
	if err := s.check(); err != nil {
		return Heard{}, err
	}
	h := Heard{Packets: make([]sample.OneWay, s.Flows*s.Count), count: s.Count, latest: make([]int64, s.Flows)}
	h.Lost = len(h.Packets)
	for i := range h.Packets {
		h.Packets[i].Flow, h.Packets[i].Sequence = int32(i/s.Count), int64(i%s.Count) //nolint:gosec // within flowsMax
	}
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return prepare(raw, &h) }}
	packets, err := c.ListenPacket(ctx, "udp", s.Addr)
	if err != nil {
		return Heard{}, err
	}
	defer func() { _ = packets.Close() }() // it only receives
	if s.Ready != nil {
		s.Ready(packets.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	socket, err := packets.(*net.UDPConn).File() // as "udp" always gives
	if err != nil {
		return h, err
	}
	defer func() { _ = socket.Close() }()
	if err := h.receive(ctx, int(socket.Fd()), s.Idle); err != nil {
		return h, err
	}
	if h.Received == 0 {
		return h, fmt.Errorf("%w at %s within %s", ErrSilence, packets.LocalAddr(), s.Idle)
	}
	return h, nil
}

// prepare sets the socket's options before it is bound, so that the first
// packet has its timestamp.
func prepare(raw syscall.RawConn, h *Heard) error {
	var err error
	set := func(fd uintptr) {
		s := int(fd)
		if err = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
			err = fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
			return
		}
		if err = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
			err = fmt.Errorf("set SO_RXQ_OVFL: %w", err)
			return
		}
		// The first is beyond net.core.rmem_max but for root; the second is not.
		if unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes) != nil {
			err = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, bufferBytes)
		}
		if err == nil {
			h.BufferBytes, err = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF)
		}
	}
	if e := raw.Control(set); e != nil {
		return e
	}
	return err
}

// receive waits in the kernel itself, on a thread of its own.
func (h *Heard) receive(ctx context.Context, socket int, idle time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	look := unix.NsecToTimeval(int64(min(idle, lookEvery)))
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &look); err != nil {
		return fmt.Errorf("set SO_RCVTIMEO: %w", err)
	}
	from := newReader(socket)
	for last := clock.Mono(); h.Received < len(h.Packets); {
		payload, control, errno := from.read()
		now := clock.Real()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errno == unix.EAGAIN, errno == unix.EINTR: // by the runtime's own signals
			if time.Duration(clock.Mono()-last) >= idle {
				return nil
			}
			continue
		case errno != 0:
			return fmt.Errorf("receive: %w", errno)
		}
		arrival, dropped := parseControl(control)
		h.Overflowed = max(h.Overflowed, int(dropped))
		h.record(payload, arrival, now)
		last = clock.Mono()
	}
	return nil
}

// reader reads messages of a socket without a word to Go's scheduler, and allocates
// nothing: it would wake up threads of its own for each, and that would be part of every
// packet's time. It blocks for lookEvery at most.
type reader struct {
	socket           int
	message          unix.Msghdr
	part             unix.Iovec
	payload, control []byte
}

func newReader(socket int) *reader {
	r := &reader{socket: socket, payload: make([]byte, SizeMax), control: make([]byte, controlMax)}
	r.part.Base = unsafe.SliceData(r.payload)
	r.part.SetLen(len(r.payload))
	r.message.Iov, r.message.Control = &r.part, unsafe.SliceData(r.control)
	r.message.SetIovlen(1)
	return r
}

// read gives the next message, whose bytes are the reader's own.
func (r *reader) read() (payload, control []byte, _ syscall.Errno) {
	r.message.SetControllen(len(r.control))
	n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(r.socket), uintptr(unsafe.Pointer(&r.message)), 0) //nolint:gosec // recvmsg fills it
	if errno != 0 {
		return nil, nil, errno
	}
	return r.payload[:n], r.control[:r.message.Controllen], 0
}

// record files one payload; its times are CLOCK_REALTIME ns.
func (h *Heard) record(payload []byte, arrivedNs, readNs int64) {
	p, err := parse(payload)
	if err != nil || p.flow >= len(h.latest) || p.sequence >= int64(h.count) || arrivedNs == 0 {
		h.Strays++
		return
	}
	row := &h.Packets[p.flow*h.count+int(p.sequence)]
	if row.ReceivedNs != 0 {
		h.Duplicates++
		return
	}
	row.SentNs, row.ReceivedNs, row.ReadNs = p.sentNs, arrivedNs, readNs
	h.Received++
	h.Lost--
	if p.sequence < h.latest[p.flow] {
		h.Reordered++
	}
	h.latest[p.flow] = max(h.latest[p.flow], p.sequence)
}

// cmsgHeader is the length of the header of a message in control data.
const cmsgHeader = unix.SizeofCmsghdr

// parseControl reads the arrival time (CLOCK_REALTIME ns) and the number of
// packets dropped so far out of a message's control data; 0 where absent.
func parseControl(b []byte) (arrivalNs int64, dropped uint32) {
	for len(b) >= cmsgHeader {
		length := binary.NativeEndian.Uint64(b)
		level, kind := binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
		if length < uint64(cmsgHeader) || length > uint64(len(b)) {
			return arrivalNs, dropped
		}
		data := b[cmsgHeader:length]
		switch {
		case level != unix.SOL_SOCKET:
		case kind == unix.SCM_TIMESTAMPNS && len(data) >= 16:
			seconds := int64(binary.NativeEndian.Uint64(data))
			arrivalNs = seconds*int64(time.Second) + int64(binary.NativeEndian.Uint64(data[8:]))
		case kind == unix.SO_RXQ_OVFL && len(data) >= 4:
			dropped = binary.NativeEndian.Uint32(data)
		}
		b = b[min(unix.CmsgSpace(len(data)), len(b)):]
	}
	return arrivalNs, dropped
}
