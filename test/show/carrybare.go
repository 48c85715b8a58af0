package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

// carryBare is what a connection costs whoever carries it in user space: the calls of the
// kernel that make a second one and pass a question and its answer, one connection after the
// other by one thread that waits in them. It knows when who will say what, which no proxy
// does, and it ends with the program.
func carryBare(listen, target string) error {
	at, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	fd := int(file.Fd()) // which blocks from now on
	runtime.LockOSThread()
	var buffer [64 << 10]byte
	for {
		client, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
		if errno != 0 {
			return os.NewSyscallError("accept4", errno)
		}
		if err := passBare(int(client), at, buffer[:]); err != nil { //nolint:gosec // a descriptor
			return err
		}
	}
}

// passBare carries one connection: a question, an answer, and both ends.
func passBare(client int, to netip.AddrPort, buffer []byte) error {
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	address := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().As4()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&address.Port))[:], to.Port())                                               //nolint:gosec // its bytes, in the network's order
	_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(server), uintptr(unsafe.Pointer(&address)), unix.SizeofSockaddrInet4) //nolint:gosec // connect reads it
	if errno != 0 {
		return os.NewSyscallError("connect", errno)
	}
	for from, peer := client, server; ; from, peer = peer, from { // by turns
		n, errno := socket.Receive(from, buffer)
		if errno != 0 || n == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(peer), unix.SHUT_WR, 0)
			if from == server || errno != 0 {
				break
			}
			continue
		}
		if _, errno := socket.Send(peer, buffer[:n]); errno != 0 {
			break
		}
	}
	for _, fd := range []int{client, server} {
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	}
	return nil
}
