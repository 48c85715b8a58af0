// Package dataplane is what all data planes of the proxy have in common: whom they ask
// where a connection goes, and what they tell of it. A plane is a package below. It does
// not know Kubernetes: who serves what is the Chooser's.
package dataplane

import (
	"fmt"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

// A Chooser says where connections go.
type Chooser interface {
	// Choose names an endpoint for a call. An error refuses it.
	Choose(c Call) (Choice, error)
	// Answered is told when the endpoint's first byte came.
	Answered(c *Choice)
	// Done ends a choice, once.
	Done(c *Choice, o Outcome)
	// Serves says whether the endpoint is still there. Who has sent it a datagram cannot tell.
	Serves(c *Choice) bool
}

// An Outcome is what came of a connection.
type Outcome int

// The outcomes. Gone says nothing of the endpoint: a client left before that was reached, or
// without an answer, for which not all ask.
const (
	Served Outcome = iota
	Failed
	Gone
)

// A Call is of a client, for a target.
type Call struct {
	UDP            bool
	Target, Client netip.AddrPort
	Tried          []netip.AddrPort // endpoints that did not take it
}

// A Choice is an endpoint for a call. Token is the Chooser's own.
type Choice struct {
	Call
	Endpoint netip.AddrPort
	Token    any
}

// OriginalDestination is what a redirected connection was meant for, as connection
// tracking remembers: SO_ORIGINAL_DST of linux/netfilter_ipv4.h, and that of IPv6. One
// that was not redirected was meant for where it arrived.
func OriginalDestination(fd int, local netip.AddrPort) (netip.AddrPort, error) {
	const soOriginalDst = 80
	var raw [unix.SizeofSockaddrInet6]byte
	size := uint32(len(raw))
	level := uintptr(unix.SOL_IP)
	if local.Addr().Is6() {
		level = unix.SOL_IPV6
	}
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), level, soOriginalDst,
		uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // getsockopt fills it
	switch {
	case errno == unix.ENOENT || errno == unix.ENOPROTOOPT:
		return local, nil
	case errno != 0:
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", errno)
	}
	return socket.AddressOf(raw), nil
}
