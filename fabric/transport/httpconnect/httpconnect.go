// Package httpconnect carries streams as the ClusterLink design does: for each, the
// peer's gateway is asked for leave and gives a token that is good for seconds; then a
// connection of its own is dialled, with TLS, and HTTP's CONNECT with that token opens
// it. That is four round trips before the first byte, where native needs none: this is
// what native is compared with, and what a peer speaks that knows no other.
//
// It does not say who may call what: the backends of a Server do. Start at NewDialer for
// the side that calls, at NewServer for the one that is called.
package httpconnect

import (
	"crypto/tls"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// Protocol is what both speak in TLS (ALPN): HTTP/1.1, for leave and for streams.
const Protocol = "http/1.1"

const (
	// leavePath is where leave is asked for.
	leavePath = "/v1/leave"
	// tokenLasts is how long a token is good, as in the design.
	tokenLasts = 5 * time.Second
	// tokensMax bounds those that are not used yet.
	tokensMax = 10_000
	bodyMax   = 8 << 10
	headerMax = 16 << 10
	dialTime  = 10 * time.Second
	// requestTime is how long a request may take from its first byte.
	requestTime = 10 * time.Second
)

// leave is what is asked for.
type leave struct {
	Target transport.Target  `json:"target"`
	Source map[string]string `json:"source,omitempty"`
	Client transport.Client  `json:"client,omitzero"`
}

// granted is the answer.
type granted struct {
	Token string `json:"token"`
}

// refused is the answer that says why not.
type refused struct {
	Code transport.Code `json:"code"`
}

// half is a connection of TLS whose directions end by themselves: TLS tells the end of
// one by an alert (RFC 8446 section 6.1), and a connection of TCP that ends without it was
// reset.
type half struct{ *tls.Conn }

// Abort ends the connection without the alert.
func (h half) Abort() {
	if c, ok := h.NetConn().(transport.Conn); ok {
		transport.Reset(c)
		return
	}
	_ = h.NetConn().Close()
}

// Close ends what both directions have ended.
func (h half) Close() error { return h.NetConn().Close() }

// socket is an application's or a service's.
type socket struct{ transport.Conn }

// Abort resets it.
func (s socket) Abort() { transport.Reset(s.Conn) }
