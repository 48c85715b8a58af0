package oneway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/sample"
)

// ErrSilence is returned when not one packet arrived.
var ErrSilence = errors.New("no packet arrived")

// bufferBytes is the receive buffer asked for: a pause of the listener must
// not lose packets.
const bufferBytes = 8 << 20

// controlMax holds a timestamp and a drop counter, with room.
const controlMax = 128

// ListenSpec says what to wait for.
type ListenSpec struct {
	// Addr is HOST:PORT to listen on; port 0 takes a free one.
	Addr string
	// Count of packets that the talker sends.
	Count int
	// Idle ends the wait: so long without a packet, the first included.
	Idle time.Duration
	// Ready, if set, is called with the address once packets can arrive.
	Ready func(netip.AddrPort)
}

// Heard is what arrived.
type Heard struct {
	// Packets has a row per sequence number, in order. A lost packet has
	// ReceivedNs 0, and SentNs 0 too, as only the talker knows it.
	Packets []sample.OneWay
	// Received counts the packets that arrived, each once; Duplicates came
	// again, and Strays were not of this probe.
	Received, Duplicates, Strays int
	// Overflowed packets are lost to the listener's own full buffer, of
	// BufferBytes: they are no loss of the system's.
	Overflowed, BufferBytes int
}

// Listen receives until Count packets have arrived, until none has for Idle, or
// until ctx ends. The rows come beside the cause of ctx's end, and beside ErrSilence.
func Listen(ctx context.Context, s ListenSpec) (Heard, error) {
	if s.Count < 1 || s.Count > countMax || s.Idle <= 0 {
		return Heard{}, fmt.Errorf("%w: count %d lies outside 1 to %d, or idle %s is not above 0", ErrSpec, s.Count, countMax, s.Idle)
	}
	var h Heard
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return prepare(raw, &h) }}
	packets, err := c.ListenPacket(ctx, "udp", s.Addr)
	if err != nil {
		return Heard{}, err
	}
	conn := packets.(*net.UDPConn) // as "udp" always gives
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if s.Ready != nil {
		s.Ready(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	h.Packets = make([]sample.OneWay, s.Count)
	for i := range h.Packets {
		h.Packets[i].Sequence = int64(i)
	}
	err = h.receive(conn, s.Idle)
	switch {
	case ctx.Err() != nil:
		return h, context.Cause(ctx)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		return h, err
	case h.Received == 0:
		return h, fmt.Errorf("%w at %s within %s", ErrSilence, conn.LocalAddr(), s.Idle)
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

func (h *Heard) receive(conn *net.UDPConn, idle time.Duration) error {
	payload := make([]byte, headerLen)
	control := make([]byte, controlMax)
	for h.Received < len(h.Packets) {
		if err := conn.SetReadDeadline(time.Now().Add(idle)); err != nil {
			return err
		}
		n, c, _, _, err := conn.ReadMsgUDPAddrPort(payload, control)
		if err != nil {
			return err
		}
		arrival, dropped := parseControl(control[:c])
		h.Overflowed = max(h.Overflowed, int(dropped))
		h.record(payload[:n], arrival)
	}
	return nil
}

// record files one payload that arrived at that CLOCK_REALTIME ns.
func (h *Heard) record(payload []byte, arrivalNs int64) {
	sequence, sentNs, err := parse(payload)
	switch {
	case err != nil || sequence >= int64(len(h.Packets)) || arrivalNs == 0:
		h.Strays++
	case h.Packets[sequence].ReceivedNs != 0:
		h.Duplicates++
	default:
		h.Packets[sequence].SentNs, h.Packets[sequence].ReceivedNs = sentNs, arrivalNs
		h.Received++
	}
}

// parseControl reads the arrival time (CLOCK_REALTIME ns) and the number of
// packets dropped so far out of a message's control data; 0 where absent.
func parseControl(b []byte) (arrivalNs int64, dropped uint32) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return 0, 0
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET {
			continue
		}
		switch {
		case m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16:
			seconds := int64(binary.NativeEndian.Uint64(m.Data))
			arrivalNs = seconds*int64(time.Second) + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4:
			dropped = binary.NativeEndian.Uint32(m.Data)
		}
	}
	return arrivalNs, dropped
}
