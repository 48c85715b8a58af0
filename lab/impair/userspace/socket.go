package userspace

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batch is how many messages one system call receives or sends.
	batch = 64
	// messageMax holds a packet message with the copied head of the packet, and
	// tailMax what is longer.
	messageMax = 512
	tailMax    = 1 << 16
	// copyRange is enough for the IP and transport headers; copyWhole is all that
	// an attribute can hold.
	copyRange = 64
	copyWhole = math.MaxUint16 - 4
	// receiveBuffer bounds what the kernel queues for us to read.
	receiveBuffer = 128 << 20
	// sendBuffer bounds copies that the kernel has not yet passed on.
	sendBuffer = 4 << 20
	// queueLength bounds the packets that one direction holds.
	queueLength = 1 << 17
)

var errNoAnswer = errors.New("the kernel did not answer")

// socket is the netlink socket that owns all queues of a namespace. Its data
// path (receive, send, inject, wait) bypasses the Go scheduler and belongs to one
// OS-locked thread; configure may be called from anywhere.
type socket struct {
	fd     int
	stamps int
	// raw and raw6 send copies of packets; raw6 is -1 where the kernel has no IPv6.
	raw, raw6 int
	vectors   [batch][2]unix.Iovec
	headers   [batch]mmsghdr
	// buffers lie close together, for the many messages that need no tail.
	buffers [batch][messageMax]byte
	tails   [batch][tailMax]byte
	// whole is a message with its tail.
	whole [messageMax + tailMax]byte
}

type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// openSocket also opens a socket that asks for timestamps, which has the kernel
// stamp every packet at its arrival.
func openSocket() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	s := &socket{fd: fd, stamps: -1, raw: -1, raw6: -1}
	if err := s.prepare(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *socket) prepare() error {
	if err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("bind netlink socket: %w", err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		return fmt.Errorf("set netlink receive buffer: %w", err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS, 1); err != nil {
		return fmt.Errorf("set NETLINK_NO_ENOBUFS: %w", err)
	}
	stamps, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open timestamp socket: %w", err)
	}
	s.stamps = stamps
	if err := unix.SetsockoptInt(stamps, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
	}
	for i := range s.headers {
		s.vectors[i][0] = unix.Iovec{Base: &s.buffers[i][0], Len: messageMax}
		s.vectors[i][1] = unix.Iovec{Base: &s.tails[i][0], Len: tailMax}
		s.headers[i].header.Iov = &s.vectors[i][0]
		s.headers[i].header.Iovlen = 2
	}
	return s.openRaw()
}

// openRaw opens the sockets that copies of packets are sent by, with the headers
// that they have: from here they are no forwarded packets, so that no rule queues
// them again.
func (s *socket) openRaw() (err error) {
	if s.raw, err = openRaw(unix.AF_INET); err != nil {
		return err
	}
	s.raw6, err = openRaw(unix.AF_INET6)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil // then no packet of IPv6 comes
	}
	return err
}

func openRaw(family int) (int, error) {
	raw, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return -1, fmt.Errorf("open raw socket: %w", err)
	}
	if err := unix.SetsockoptInt(raw, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer); err != nil {
		_ = unix.Close(raw)
		return -1, fmt.Errorf("set send buffer of raw socket: %w", err)
	}
	return raw, nil
}

func (s *socket) close() {
	_ = unix.Close(s.fd) // a closed socket gives its queues back
	for _, fd := range []int{s.stamps, s.raw, s.raw6} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// receive reads what is there, up to a batch, without waiting.
func (s *socket) receive() (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd),
		uintptr(unsafe.Pointer(&s.headers[0])), batch, unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	default:
		return 0, errno
	}
}

// message i of those received, until the next message is asked for.
func (s *socket) message(i int) []byte {
	length := int(s.headers[i].length)
	if length <= messageMax {
		return s.buffers[i][:length]
	}
	n := copy(s.whole[:], s.buffers[i][:])
	n += copy(s.whole[n:], s.tails[i][:min(length-messageMax, tailMax)])
	return s.whole[:n]
}

// send hands a run of concatenated messages to the kernel, which carries them
// out before it returns.
func (s *socket) send(b []byte) error {
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd),
			uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// inject sends a packet to where its IP header says.
func (s *socket) inject(packet []byte) error {
	const ipv4Min, destination4, ipv6Len, destination6 = 20, 16, 40, 24
	switch {
	case len(packet) >= ipv4Min && packet[0]>>4 == 4:
		to := unix.RawSockaddrInet4{Family: unix.AF_INET}
		copy(to.Addr[:], packet[destination4:])
		return sendRaw(s.raw, packet, unsafe.Pointer(&to), unsafe.Sizeof(to))
	case len(packet) >= ipv6Len && packet[0]>>4 == 6:
		to := unix.RawSockaddrInet6{Family: unix.AF_INET6}
		copy(to.Addr[:], packet[destination6:])
		return sendRaw(s.raw6, packet, unsafe.Pointer(&to), unsafe.Sizeof(to))
	}
	return unix.EINVAL
}

// sendRaw sends a packet to the address of a size that to points at.
func sendRaw(fd int, packet []byte, to unsafe.Pointer, size uintptr) error {
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(&packet[0])), uintptr(len(packet)), unix.MSG_DONTWAIT,
			uintptr(to), size)
		switch errno {
		case unix.EINTR:
		case 0:
			return nil
		default:
			return errno
		}
	}
}

// ask sends one configuration message and reads its answer; for a socket that
// no data path reads.
func (s *socket) ask(message []byte) error {
	if err := s.send(message); err != nil {
		return err
	}
	s.wait(ackWait)
	n, err := s.receive()
	if err != nil {
		return err
	}
	if a, ok := parseAck(s.message(0)); n > 0 && ok && a.code != 0 {
		return unix.Errno(-a.code)
	} else if n == 0 || !ok {
		return errNoAnswer
	}
	return nil
}

// longWait is from when on Go's scheduler is told of a wait: told of none, it takes the
// thread for one that computes, and interrupts it each 10 ms.
const longWait = 5 * time.Millisecond

// wait sleeps until a message can be read or the time is over.
func (s *socket) wait(d time.Duration) {
	pollfd := unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	timeout := unix.NsecToTimespec(int64(d))
	poll := unix.RawSyscall6
	if d >= longWait {
		poll = unix.Syscall6
	}
	_, _, _ = poll(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&pollfd)), 1,
		uintptr(unsafe.Pointer(&timeout)), 0, 0, 0) // an early return costs a turn of the loop
}

// rest gives the core up for a time, whatever comes in.
func rest(d time.Duration) {
	span := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&span)), 0, 0)
}
