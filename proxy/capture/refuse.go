package capture

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

// A Refusal is a port of this node that is taken and where nobody listens: who is brought there
// the kernel refuses, a connection by a reset and a datagram by ICMP's port unreachable, as from
// where the client called (docs/adr/0060-refused-by-a-closed-port.md).
type Refusal struct{ sockets []int }

// Refuse takes a port at each of these addresses.
func Refuse(here []netip.Addr, port uint16) (*Refusal, error) {
	r := &Refusal{}
	for _, a := range here {
		at := netip.AddrPortFrom(a, port)
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			if err := r.take(kind, at); err != nil {
				return nil, errors.Join(fmt.Errorf("take the port %s, which refuses: %w", at, err), r.Close())
			}
		}
	}
	return r, nil
}

// take has a socket of a kind at an address. One of datagrams that is connected to itself takes
// none of others.
func (r *Refusal) take(kind int, at netip.AddrPort) error {
	fd, err := unix.Socket(socket.Family(at.Addr()), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r.sockets = append(r.sockets, fd)
	if err := socket.Bind(fd, at); err != nil || kind == unix.SOCK_STREAM {
		return err
	}
	return socket.Connect(fd, at)
}

// Close gives the port back.
func (r *Refusal) Close() (err error) {
	for _, fd := range r.sockets {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}
