package native

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// ProtocolReverse is what a gateway speaks in TLS (ALPN) that nobody can call: it opens
// connections to those who would, each of whom says in his time which of the other
// protocols he wants of one. From there on he is the one who has called.
const ProtocolReverse = "skerry-native-reverse/1"

// OffersMost is how many connections a gateway offers ahead of need: as many as one takes
// at once.
const OffersMost = dialsMax

// Offers are connections that a gateway has opened for streams to it, and that nobody has
// wanted yet. They are safe for concurrent use.
type Offers struct {
	mu      sync.Mutex
	waiting chan *tls.Conn
	closed  bool
}

// NewOffers makes those of one gateway, of which there are none yet.
func NewOffers() *Offers { return &Offers{waiting: make(chan *tls.Conn, OffersMost)} }

// Add takes one more, if there is room.
func (o *Offers) Add(conn *tls.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	select {
	case o.waiting <- conn:
		return true
	default:
		return false
	}
}

// Close ends those that wait, and has no more taken.
func (o *Offers) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for len(o.waiting) > 0 {
		_ = (<-o.waiting).Close() // nobody has used it
	}
}

// errNoOffer is of a gateway that opens no connections.
var errNoOffer = errors.New("the gateway has opened no connection, and cannot be called")

// take wants a protocol of the next one. One that has ended while it waited is no reason
// to give up.
func (o *Offers) take(ctx context.Context, protocol string) (*tls.Conn, error) {
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, errNoOffer
		case conn := <-o.waiting:
			if err := want(conn, protocol); err == nil {
				return conn, nil
			}
			_ = conn.Close() // it is over
		}
	}
}

// want says which protocol a connection is to speak: a byte for how long its name is, then
// the name.
func want(conn net.Conn, protocol string) error {
	_ = conn.SetWriteDeadline(time.Now().Add(connectTimeout)) // of one that is over writing tells
	_, err := conn.Write(append([]byte{byte(len(protocol))}, protocol...))
	_ = conn.SetWriteDeadline(time.Time{})
	return err
}

// wanted reads what want says.
func wanted(r io.Reader) (string, error) {
	var length [1]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	name := make([]byte, length[0])
	if _, err := io.ReadFull(r, name); err != nil {
		return "", err
	}
	if protocol := string(name); slices.Contains([]string{Protocol, ProtocolShared, ProtocolLane}, protocol) {
		return protocol, nil
	}
	return "", fmt.Errorf("no protocol %q on a connection that was offered: %w", name, transport.ErrProtocol)
}

// Offer opens a connection to the gateway at HOST:PORT for streams from there. The
// configuration verifies the gateway.
func Offer(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, address, config, "", ProtocolReverse)
	if err != nil {
		return nil, err
	}
	if raw := socket.Plain(conn.NetConn()); raw != nil { // one that began anew knows nothing of it, and says so
		err = raw.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 10})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Wanted is the protocol that the other side wants of a connection, as soon as it does.
func Wanted(ctx context.Context, conn *tls.Conn) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	return wanted(conn)
}
