package socket

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Datagrams is a socket of UDP. All but Read and SendTo is that of package net.
type Datagrams struct {
	*net.UDPConn
	in  direction
	raw syscall.RawConn
}

// ListenDatagrams takes datagrams at an address.
func ListenDatagrams(at netip.AddrPort) (*Datagrams, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	d := &Datagrams{UDPConn: conn, raw: raw}
	d.in.raw, d.in.try = raw, d.in.receive
	return d, nil
}

// Read takes a datagram. What of it has no room is lost.
func (d *Datagrams) Read(b []byte) (int, error) {
	n, errno, err := d.in.call(b, d.raw.Read)
	if err == nil && errno != 0 {
		err = os.NewSyscallError("read", errno)
	}
	return n, err
}

// SendTo sends a datagram to a peer of the socket's family. One that the kernel has no room for is
// an error, and lost.
func (d *Datagrams) SendTo(b []byte, to netip.AddrPort) error {
	var errno syscall.Errno
	err := d.raw.Write(func(fd uintptr) bool {
		errno = SendTo(int(fd), b, to)
		return true
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("sendto", errno)
	}
	return err
}
