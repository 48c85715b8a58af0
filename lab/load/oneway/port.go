package oneway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
)

// Port is a UDP socket for a few timed packets in both directions: the caller
// says when to send each, and takes what has arrived when it likes, since the
// kernel has stamped it. One goroutine at a time uses it.
type Port struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	addr    netip.AddrPort
	packet  [SizeMax]byte
	header  [headerLen]byte
	control [controlMax]byte
}

// OpenPort opens a port at HOST:PORT in the network namespace of the calling
// thread, for packets of one interface alone, whatever the routes say.
func OpenPort(ctx context.Context, address, device string) (*Port, error) {
	var ignored Heard
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		err := prepare(raw, &ignored)
		e := raw.Control(func(fd uintptr) {
			if err == nil {
				err = bind(int(fd), device)
			}
		})
		return errors.Join(err, e)
	}}
	packets, err := c.ListenPacket(ctx, "udp4", address)
	if err != nil {
		return nil, err
	}
	conn := packets.(*net.UDPConn) // as "udp4" always gives
	raw, err := conn.SyscallConn()
	if err != nil {
		_ = conn.Close() // the first error tells why
		return nil, err
	}
	return &Port{conn: conn, raw: raw, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

// bind keeps a socket to an interface, and gives it room for a whole burst.
func bind(fd int, device string) error {
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface %s: %w", device, err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bufferBytes) != nil {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bufferBytes)
	}
	return nil
}

// Addr is where the port receives.
func (p *Port) Addr() netip.AddrPort { return p.addr }

// Close closes the port.
func (p *Port) Close() error { return p.conn.Close() }

// Send sends a packet with a payload of so many bytes, SizeMin to SizeMax, and
// tells the CLOCK_REALTIME in ns just before. One that the kernel does not take
// for want of buffers or of a receiver is lost.
func (p *Port) Send(to netip.AddrPort, sequence int64, size int) (sentNs int64, err error) {
	sentNs = clock.Real()
	header{sequence: sequence, sentNs: sentNs}.put(p.packet[:])
	_, err = p.conn.WriteToUDPAddrPort(p.packet[:size], to)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOBUFS) {
		err = nil
	}
	return sentNs, err
}

// Drain takes what has arrived, without waiting: the sequence number and the
// arrival time (CLOCK_REALTIME ns) of each packet. Strays are left out.
func (p *Port) Drain(take func(sequence, receivedNs int64)) error {
	var err error
	e := p.raw.Control(func(fd uintptr) {
		for {
			var n, c int
			n, c, _, _, err = unix.Recvmsg(int(fd), p.header[:], p.control[:], unix.MSG_DONTWAIT)
			if err != nil {
				break
			}
			arrival, _ := parseControl(p.control[:c])
			if h, e := parse(p.header[:n]); e == nil && arrival > 0 {
				take(h.sequence, arrival)
			}
		}
	})
	if e != nil {
		return e
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	return err
}

// SleepUntil sleeps in the kernel until a CLOCK_MONOTONIC time in ns: the
// runtime's timers are a millisecond coarse.
func SleepUntil(due int64) error {
	for clock.Mono() < due {
		t := unix.NsecToTimespec(due)
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil)
		// The runtime's own preemption signals interrupt it.
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("sleep: %w", err)
		}
	}
	return nil
}
