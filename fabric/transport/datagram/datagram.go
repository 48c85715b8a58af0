// Package datagram carries UDP between gateways: what a client says to a service is a
// flow, whose datagrams travel as QUIC's (RFC 9221) over a connection that is open before
// it is needed, so that the first of them needs no round trip more. Nothing is sent twice,
// and what waits too long gives way to what is newer. docs/wire-datagram.md is the wire
// format.
//
// It does not say who may call what: the backends of a Server do. Start at NewLink for
// the side that calls, at NewServer for the one that is called.
package datagram

import (
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// Protocol is the name of this wire format in TLS (ALPN, RFC 7301).
const Protocol = "skerry-datagram/1"

// DatagramBytes is the longest datagram that is carried.
const DatagramBytes = 9600

// packetLeast is what every path of QUIC carries (RFC 9000 section 14).
const packetLeast = 1200

// Bounds of a connection.
const (
	// flowsMax is how many flows a connection has: of more, the one that has been idle for
	// the longest gives way.
	flowsMax = 4096
	// streamsMax leaves room for streams whose end the other side does not know yet.
	streamsMax = flowsMax + 256
	// windowBytes is what streams together may have said that was not read.
	windowBytes = 1 << 20
	// idleAfter is how long a flow lasts after its last datagram, RFC 4787 REQ-5's least.
	idleAfter = 2 * time.Minute
	// leavingIdleAfter is how long at a gateway that ends.
	leavingIdleAfter = 5 * time.Second
)

// Times of a connection.
const (
	handshakeTimeout = 2 * time.Second
	// keepAlive is how often something is sent to a peer when there is nothing to say.
	keepAlive = 500 * time.Millisecond
	// quietAfter is the silence after which new flows take another gateway, where one is.
	quietAfter = 3 * keepAlive
	// lostAfter is the silence that ends a connection.
	lostAfter = 5 * time.Second
	// lookEvery is how often silence and idle flows are looked for.
	lookEvery = 500 * time.Millisecond
)

// Codes by which a connection ends.
const (
	codeEnded  quic.ApplicationErrorCode = 0
	codeBreach quic.ApplicationErrorCode = 1
)

// Drops counts datagrams that did not arrive, by why. What a link or QUIC loses is not
// among them.
type Drops struct {
	// Queue: others of their flow or connection were newer, and the link was full.
	Queue atomic.Uint64
	// Long: over DatagramBytes, or over what the path carries in parts.
	Long atomic.Uint64
	// Parts: a part was lost.
	Parts atomic.Uint64
	// Early: their flow was not opened within a second.
	Early atomic.Uint64
	// Late: their flow was over.
	Late atomic.Uint64
	// Socket: the socket that they were for took no more.
	Socket atomic.Uint64
	// Refused: no flow could be opened for them.
	Refused atomic.Uint64
}

// Total is all of them.
func (d *Drops) Total() (n uint64) {
	for _, one := range []*atomic.Uint64{&d.Queue, &d.Long, &d.Parts, &d.Early, &d.Late, &d.Socket, &d.Refused} {
		n += one.Load()
	}
	return n
}

// ProtocolReverse is its name where who cannot be called has opened the connection, to be
// called by it.
const ProtocolReverse = "skerry-datagram-reverse/1"

// settings of QUIC. Only who calls opens streams in both directions; who is called says
// with one in its own direction that it leaves.
func settings(caller bool) *quic.Config {
	c := &quic.Config{
		InitialPacketSize: packetLeast, // until a larger one has come through
		EnableDatagrams:   true, HandshakeIdleTimeout: handshakeTimeout, MaxIdleTimeout: lostAfter, KeepAlivePeriod: keepAlive,
		InitialStreamReceiveWindow: requestRoom, MaxStreamReceiveWindow: requestRoom,
		InitialConnectionReceiveWindow: windowBytes, MaxConnectionReceiveWindow: windowBytes,
		MaxIncomingStreams: streamsMax, MaxIncomingUniStreams: -1,
	}
	if caller {
		c.MaxIncomingStreams, c.MaxIncomingUniStreams = -1, 1
	}
	return c
}

// listening are those where it is not known yet who of the two will call.
func listening() *quic.Config {
	c := settings(false)
	c.MaxIncomingUniStreams = 1
	return c
}
