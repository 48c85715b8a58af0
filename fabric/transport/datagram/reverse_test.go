package datagram

import (
	"context"
	"errors"
	"testing"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// offeredTo is a server of c1 that is offered connections by c2.
func offeredTo(t *testing.T, b *backend) (address string, stores map[string]*identity.Store) {
	t.Helper()
	stores = identitytest.Stores(t, "c1", "c2")
	s, err := NewServer("127.0.0.1:0", stores["c1"].Server(Protocol, ProtocolReverse), b, new(Drops))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s.Address().String(), stores
}

// Connections that nobody wants are refused, and told.
func TestOfferRefused(t *testing.T) {
	b := new(backend)
	address, stores := offeredTo(t, b)
	offering, err := NewServer("", nil, new(backend), new(Drops))
	if err != nil {
		t.Fatal(err)
	}
	until, cancel := context.WithCancel(t.Context())
	told, over := make(chan error, 100), make(chan struct{})
	go func() {
		offering.Offer(until, until, address, stores["c2"].Client("c1", ProtocolReverse), func(err error) { told <- err })
		close(over)
	}()
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	var refused *quic.ApplicationError
	if err := <-told; !errors.As(err, &refused) || refused.ErrorCode != quic.ApplicationErrorCode(transport.Denied) {
		t.Errorf("told is %v", err)
	}
	if !b.isWarned(identity.ErrUntrusted) {
		t.Errorf("warned of %v", b.warned)
	}
	cancel()
	<-over
}

// A connection that is offered no more takes no new flow, goes on for those that it has, and
// ends after them.
func TestOfferEnds(t *testing.T) {
	t.Parallel() // it waits for seconds
	wanting := &backend{offered: NewOfferedLink(nil, new(Drops), func(error) {})}
	address, stores := offeredTo(t, wanting)
	offering, err := NewServer("", nil, &backend{address: echo(t)}, new(Drops))
	if err != nil {
		t.Fatal(err)
	}
	until, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	go func() {
		offering.Offer(t.Context(), until, address, stores["c2"].Client("c1", ProtocolReverse), func(error) {})
		close(over)
	}()
	link := wanting.offered
	conntest.Await(t, "a connection", func() bool { return link.Path().Ready })
	heard := make(chan []byte, 1)
	f, err := link.Open(asking, func(b []byte) { heard <- b }, func(transport.Code) {})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	conntest.Await(t, "no way for new flows", func() bool { return !link.Path().Ready })
	if _, err := link.Open(asking, func([]byte) {}, func(transport.Code) {}); !errors.Is(err, transport.ErrNotOpened) {
		t.Errorf("a new flow: %v", err)
	}
	f.Send([]byte("still there"))
	if got := <-heard; string(got) != "still there" {
		t.Errorf("heard %q", got)
	}
	f.End(Over)
	<-over
	conntest.Await(t, "no connection", func() bool { return len(link.connections()) == 0 })
}

// Who is called by a connection that it has opened opens no flow itself, and not too many
// connections.
func TestOfferMisbehaves(t *testing.T) {
	b := new(backend)
	b.offered = NewOfferedLink(nil, new(Drops), func(error) {})
	address, stores := offeredTo(t, b)
	open := func() *quic.Conn {
		t.Helper()
		conn, err := dial(t.Context(), address, stores["c2"].Client("c1", ProtocolReverse), settings(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseWithError(codeEnded, "") })
		return conn
	}
	code := func(conn *quic.Conn) quic.ApplicationErrorCode {
		<-conn.Context().Done()
		var ended *quic.ApplicationError
		if err := context.Cause(conn.Context()); !errors.As(err, &ended) {
			t.Fatalf("it has ended by %v", err)
		}
		return ended.ErrorCode
	}
	bad := open()
	stream, err := bad.OpenStream()
	if err == nil {
		_, err = stream.Write([]byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := code(bad); got != codeBreach {
		t.Errorf("a flow opened by who is called: ended by code %d", got)
	}
	conntest.Await(t, "no connection", func() bool { return len(b.offered.connections()) == 0 })
	for n := range gatewayConnectionsMax {
		open()
		conntest.Await(t, "a connection", func() bool { return len(b.offered.connections()) == n+1 })
	}
	if got := code(open()); got != quic.ApplicationErrorCode(transport.Denied) || !b.isWarned(transport.ErrProtocol) {
		t.Errorf("one too many ended by code %d, warned of %v", got, b.warned)
	}
	b.offered.End()
	conntest.Await(t, "no connection", func() bool { return len(b.offered.connections()) == 0 })
}
