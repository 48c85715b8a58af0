package transport

import (
	"fmt"
	"net"
	"net/netip"
)

// Client is the address and port that a client of a service calls from, in the form in
// which gateways tell one another: IPv4 as such, and no zone, which means nothing
// elsewhere. The zero value is one that is not known.
type Client netip.AddrPort

// ClientOf is the client at the other end of a connection.
func ClientOf(a net.Addr) Client {
	if has, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return plain(has.AddrPort())
	}
	return Client{}
}

func plain(a netip.AddrPort) Client {
	return Client(netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()))
}

// Addr is its address, the zero value where that is not known.
func (c Client) Addr() netip.Addr { return netip.AddrPort(c).Addr() }

// TCP is the client as the standard library has it.
func (c Client) TCP() *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.AddrPort(c)) }

// MarshalText writes it as ADDRESS:PORT, with an IPv6 address in brackets (RFC 5952).
func (c Client) MarshalText() ([]byte, error) { return netip.AddrPort(c).MarshalText() }

// UnmarshalText reads what MarshalText writes, and nothing else.
func (c *Client) UnmarshalText(text []byte) error {
	a, err := netip.ParseAddrPort(string(text))
	if err != nil {
		return err
	}
	if plain(a) != Client(a) || a.String() != string(text) {
		return fmt.Errorf("the client %q: want %q", text, netip.AddrPort(plain(a)))
	}
	*c = Client(a)
	return nil
}
