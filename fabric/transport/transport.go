// Package transport is what gateways have in common, whatever carries an application's
// connection from one to the other. The ways to do so are in the folders below. It
// decides nothing about who may call whom. Start at Carrier.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// Protocols of a service.
const (
	TCP = "tcp"
	UDP = "udp"
)

// Target is a port of a service.
type Target struct {
	Namespace string `cbor:"1,keyasint" json:"namespace"`
	Name      string `cbor:"2,keyasint" json:"name"`
	Port      uint16 `cbor:"3,keyasint" json:"port"`
	Protocol  string `cbor:"4,keyasint" json:"protocol"`
}

// String is NAMESPACE/NAME:PORT, with the protocol where that is not TCP.
func (t Target) String() string {
	if t.Protocol == TCP {
		return fmt.Sprintf("%s/%s:%d", t.Namespace, t.Name, t.Port)
	}
	return fmt.Sprintf("%s/%s:%d/%s", t.Namespace, t.Name, t.Port, t.Protocol)
}

// Request is a connection that an application asks for.
type Request struct {
	Target Target
	// Source is who asks, by attributes that its gateway vouches for.
	Source map[string]string
	// Client is where it asks from, by that gateway's word.
	Client Client
	// Confirm has the application's connection begin when the service has accepted.
	Confirm bool
	// First is what the application has said already. Of an application's connection no more
	// is read until it is sent.
	First []byte
	// Traffic counts what passes; nil where nobody asks.
	Traffic *Traffic
}

// Conn is a connection of an application or of a service: of package socket, or a *net.TCPConn.
type Conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// Carrier takes connections to a peer.
type Carrier interface {
	// Carry connects app with the target until both sides have ended, and closes it. An
	// error is why the stream broke, and app was reset; or ErrNotOpened, and app is as it
	// was.
	Carry(ctx context.Context, r Request, app Conn) error
	// Path says what is known of the way, and asks nobody.
	Path() Path
	// Streams counts those that are open.
	Streams() int
	// Recheck ends connections whose peer is not to be trusted any more, and says why.
	Recheck() []error
	// Health says how the way does.
	Health() Health
}

// Path is what is known of a way to a gateway, to choose one by.
type Path struct {
	// Ready says that a stream would begin without a dial that may fail, and that the
	// gateway has answered of late.
	Ready bool
	// RTT is how long its answers take, 0 while that is not known.
	RTT time.Duration
	// Loss is the share of packets that are lost on the way there.
	Loss float64
	// Streams are on the way there now.
	Streams int
}

// ErrProtocol says that a peer speaks another protocol, or breaks the one it speaks.
var ErrProtocol = errors.New("breach of protocol")

// ErrNotOpened says that a stream was not begun: another way may be tried.
var ErrNotOpened = errors.New("no connection to the peer")

// Backend is a service's side of requests. Errors of type *Refusal tell the peer why.
type Backend interface {
	// Allow says why a peer may not call what it asks for, if it may not.
	Allow(peer identity.Name, r Request) error
	// Dial calls it.
	Dial(ctx context.Context, peer identity.Name, r Request) (Conn, error)
}

// Reset ends a connection so that its other end knows that something broke.
func Reset(c Conn) {
	_ = c.SetLinger(0) // of a connection that is gone there is nothing to reset
	_ = c.Close()
}
