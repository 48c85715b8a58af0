package workload

import (
	"context"
	"net"

	"skerry.dev/skerry/internal/socket"
)

// Break takes every connection on l and resets it as soon as the client says something: a
// service that fails at once, which who looks whether it listens takes to be well. It
// returns as ServeStream does.
func Break(ctx context.Context, l net.Listener) error {
	s := newServer(nil)
	s.session = func(nc net.Conn, _ context.CancelFunc) session { return brokenStream{echoStream{net: nc}} }
	return s.serve(ctx, l)
}

// brokenStream is a connection of Break.
type brokenStream struct{ echoStream }

func (b brokenStream) serve(context.Context) {
	defer b.close()
	if n, _ := b.net.Read(make([]byte, 1)); n > 0 {
		_ = socket.Plain(b.net).SetLinger(0)
	}
}
