package socket

import (
	"encoding/binary"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls on sockets that do not block, without a word to Go's scheduler.

// Receive reads.
func Receive(fd int, into []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into))) //nolint:gosec // read fills it
	return int(n), errno                                                                                                               //nolint:gosec // no more than len
}

// Send writes. Where the peer has gone there is no signal.
func Send(fd int, from []byte) (int, syscall.Errno) { return send(fd, from, 0) }

// SendLast is Send of what the socket's end follows at once: both leave in one segment.
func SendLast(fd int, from []byte) (int, syscall.Errno) { return send(fd, from, unix.MSG_MORE) }

func send(fd int, from []byte, flags uintptr) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(len(from)), unix.MSG_NOSIGNAL|flags, 0, 0) //nolint:gosec // send reads it
	return int(n), errno                                                                                                                                                 //nolint:gosec // no more than len
}

// SendTo sends a datagram.
func SendTo(fd int, datagram []byte, to netip.AddrPort) syscall.Errno {
	raw, size := Address(to)
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(datagram))), uintptr(len(datagram)), unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&raw)), size) //nolint:gosec // sendto reads them
	return errno
}

// receiveStamped takes a datagram of a socket that has SO_TIMESTAMPNS, and says when the kernel had
// it; the zero time is not known.
func receiveStamped(fd int, into []byte) (n int, came time.Time, errno syscall.Errno) {
	var control [64]byte // room for one timestamp, with its header
	vector := unix.Iovec{Base: unsafe.SliceData(into)}
	vector.SetLen(len(into))
	message := unix.Msghdr{Iov: &vector, Control: &control[0]}
	message.SetIovlen(1)
	message.SetControllen(len(control))
	got, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 0) //nolint:gosec // recvmsg fills it
	if errno != 0 {
		return 0, came, errno
	}
	header, data, _, err := unix.ParseOneSocketControlMessage(control[:message.Controllen])
	if err == nil && header.Level == unix.SOL_SOCKET && header.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
		came = time.Unix((*unix.Timespec)(unsafe.Pointer(&data[0])).Unix()) //nolint:gosec // cmsg(3) aligns it
	}
	return int(got), came, 0 //nolint:gosec // no more than len
}

// LocalOf is the address that a socket has here.
func LocalOf(fd int) (netip.AddrPort, error) {
	var raw [unix.SizeofSockaddrInet6]byte
	size := uint32(len(raw))
	_, _, errno := syscall.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size))) //nolint:gosec // getsockname fills them
	if errno != 0 {
		return netip.AddrPort{}, errno
	}
	return AddressOf(raw), nil
}

// Bind gives a socket its address here.
func Bind(fd int, at netip.AddrPort) error {
	raw, size := Address(at)
	_, _, errno := syscall.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&raw)), size) //nolint:gosec // bind reads it
	if errno != 0 {
		return os.NewSyscallError("bind", errno)
	}
	return nil
}

// Connect begins a connection: an error of EINPROGRESS is none.
func Connect(fd int, to netip.AddrPort) error {
	raw, size := Address(to)
	_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw)), size) //nolint:gosec // connect reads it
	if errno != 0 && errno != unix.EINPROGRESS {
		return os.NewSyscallError("connect", errno)
	}
	return nil
}

// Family is that of an address's sockets.
func Family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// Address is a struct sockaddr_in or sockaddr_in6, of a size; AddressOf reads it.
func Address(a netip.AddrPort) (raw [unix.SizeofSockaddrInet6]byte, size uintptr) {
	ip := a.Addr().Unmap()
	binary.BigEndian.PutUint16(raw[2:], a.Port())
	if ip.Is4() {
		binary.NativeEndian.PutUint16(raw[:], unix.AF_INET)
		copy(raw[4:], ip.AsSlice())
		return raw, unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(raw[:], unix.AF_INET6)
	copy(raw[8:], ip.AsSlice())
	return raw, unix.SizeofSockaddrInet6
}

// AddressOf is that of a struct sockaddr_in or sockaddr_in6: family, port, and the address
// behind it, which in the latter follows the flow.
func AddressOf(raw [unix.SizeofSockaddrInet6]byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(raw[2:])
	if binary.NativeEndian.Uint16(raw[:]) == unix.AF_INET6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port)
}
