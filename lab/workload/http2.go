package workload

import (
	"bufio"
	"context"
	"io"
	"log"
	"math"
	"net"
	"net/http"

	"golang.org/x/net/http2"
)

// prior is how a connection of HTTP/2 begins that needs no upgrade (RFC 9113
// §3.4): no method of HTTP/1.1 has these three letters.
const prior = "PRI"

// streams serves the connections of HTTP/2, by the library: its goroutines are
// the price of several requests at once.
type streams struct {
	base *http.Server
	h2   *http2.Server
}

func newStreams() *streams {
	s := &streams{
		base: &http.Server{ErrorLog: log.New(io.Discard, "", 0)}, //nolint:gosec // no deadlines: see Serve
		h2: &http2.Server{
			// So large that flow control does not hold a body up.
			MaxUploadBufferPerConnection: math.MaxInt32, MaxUploadBufferPerStream: BodyMax,
		},
	}
	if err := http2.ConfigureServer(s.base, s.h2); err != nil {
		panic(err) // it refuses TLS settings, and there are none
	}
	return s
}

// serve answers the requests of a connection of which the first bytes are still
// in its buffer.
func (s *streams) serve(ctx context.Context, nc net.Conn, in *bufio.Reader, h http.Handler) {
	s.h2.ServeConn(buffered{nc, in}, &http2.ServeConnOpts{Context: ctx, BaseConfig: s.base, Handler: h})
}

// stop has the clients told that no further request is taken; a connection on
// which none is under way ends a second later.
func (s *streams) stop(ctx context.Context) { _ = s.base.Shutdown(ctx) } // it has no listeners to fail at

// buffered is a connection of which something has been read ahead.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }
