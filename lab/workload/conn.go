// A request: read → handler → one write; one goroutine. conn.go reads, reply.go
// writes.
//
// The goroutine of a connection waits for the first byte, reads the header, runs
// the handler, which reads the body from the same buffer, and writes the answer.
// Nothing is handed to another goroutine, so no other thread has to be woken.
// The exception is a handler that asks its context for Done (sleep, burn): a
// second goroutine then watches for the client's end until the handler returns.
// No lock is held while anything blocks.

package workload

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// headerMax bounds a request's line and header in bytes; what the buffer
	// holds already (4 KiB) is not counted.
	headerMax = 1 << 20
	// drainMax bounds what is read of a body that the handler left, so that the
	// connection can be kept.
	drainMax = 256 << 10
	// lingerMax bounds the wait for a client that is still sending when it has
	// been refused: closing at once would reset the connection, and the answer
	// would be lost (RFC 9112 §9.6).
	lingerMax = 500 * time.Millisecond
)

var errHeaderTooLong = errors.New("header is too long")

// conn is one connection. All but what is marked is its goroutine's own.
type conn struct {
	server *server
	net    net.Conn
	remote string
	cancel context.CancelFunc // ends the context of the connection
	in     *bufio.Reader      // of source; the watcher's while there is one
	source source
	body   body
	reply  reply

	// busy is claimed by the request that has begun or by a stop.
	busy atomic.Bool

	mu      sync.Mutex
	handled bool          // a handler has the request
	watched chan struct{} // closed when the watcher has ended; nil without one
}

func newConn(s *server, nc net.Conn, cancel context.CancelFunc) *conn {
	c := &conn{server: s, net: nc, remote: nc.RemoteAddr().String(), cancel: cancel}
	c.source.net = nc
	c.in = bufio.NewReader(&c.source)
	c.body.conn = c
	c.reply.conn = c
	c.reply.header = http.Header{}
	return c
}

// serve answers requests until one side ends the connection.
func (c *conn) serve(ctx context.Context) {
	defer func() {
		// A handler that panics ends its connection, not the server.
		_ = recover()
		c.cancel()
		_ = c.net.Close()
	}()
	if c.speaksHTTP2() {
		c.serveHTTP2(ctx)
		return
	}
	peer := peerContext{ctx, c}
	for !c.server.stopping.Load() {
		c.source.left = headerMax
		if _, err := c.in.Peek(1); err != nil || !c.busy.CompareAndSwap(false, true) {
			return
		}
		if !c.answer(peer) {
			return
		}
		c.busy.Store(false)
	}
}

// speaksHTTP2 waits for the first bytes. No request of HTTP/1.1 is as short as
// those, so none waits in vain.
func (c *conn) speaksHTTP2() bool {
	c.source.left = headerMax
	for n := 1; n <= len(prior); n++ {
		if first, err := c.in.Peek(n); err != nil || string(first) != prior[:n] {
			return false
		}
	}
	return true
}

// serveHTTP2 has the library serve the connection, which is busy to its end: a
// stop goes by streams.stop.
func (c *conn) serveHTTP2(ctx context.Context) {
	if c.busy.CompareAndSwap(false, true) {
		c.source.left = math.MaxInt64
		c.server.streams.serve(ctx, c.net, c.in, c.server.handler)
	}
}

// closeIdle closes the connection unless a request has begun.
func (c *conn) closeIdle() {
	if c.busy.CompareAndSwap(false, true) {
		_ = c.net.Close()
	}
}

func (c *conn) close() { _ = c.net.Close() }

// answer reads and answers one request, and reports whether another may follow.
func (c *conn) answer(ctx context.Context) bool {
	r, err := http.ReadRequest(c.in)
	c.source.left = math.MaxInt64
	if status := refusal(r, err); status != 0 {
		c.refuse(status)
		return false
	}
	r = r.WithContext(ctx)
	r.RemoteAddr = c.remote
	c.body.begin(r)
	c.reply.begin(r)
	c.setHandled(true)
	c.server.handler.ServeHTTP(&c.reply, r)
	c.unwatch()
	settled := c.body.settle()
	if !settled {
		c.reply.last = true
	}
	c.reply.end()
	if !settled {
		c.linger()
	}
	return !c.reply.last
}

// refusal is the status for a request that no handler should see, else 0.
func refusal(r *http.Request, err error) int {
	switch {
	case errors.Is(err, errHeaderTooLong):
		return http.StatusRequestHeaderFieldsTooLarge
	case err != nil:
		return http.StatusBadRequest
	case r.ProtoMajor != 1:
		return http.StatusHTTPVersionNotSupported
	case r.ProtoAtLeast(1, 1) && r.Host == "": // RFC 9112 §3.2
		return http.StatusBadRequest
	case r.Header.Get("Expect") != "" && !expectsContinue(r):
		return http.StatusExpectationFailed
	}
	return 0
}

func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

func (c *conn) refuse(status int) {
	c.body.ended.Store(true)
	c.reply.begin(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Close: true})
	http.Error(&c.reply, http.StatusText(status), status)
	c.reply.end()
	c.linger()
}

// linger ends the answer, then reads on so that the client sees it.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.net.SetReadDeadline(time.Now().Add(lingerMax)) == nil {
		_, _ = io.Copy(io.Discard, c.net)
	}
}

// peerContext is the context of a connection. It watches the client only for
// who asks, for the watcher is the second goroutine that costs so much.
type peerContext struct {
	context.Context
	conn *conn
}

func (p peerContext) Done() <-chan struct{} {
	p.conn.watch()
	return p.Context.Done()
}

// watch starts the watcher if a handler runs, its body has been read and there
// is no watcher yet. It may be called by any goroutine.
func (c *conn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.handled || c.watched != nil || !c.body.ended.Load() {
		return
	}
	ended := make(chan struct{})
	c.watched = ended
	go func() {
		defer close(ended)
		// A byte is the next request's and stays in the buffer.
		_, err := c.in.Peek(1)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.cancel()
		}
	}()
}

// unwatch takes the buffer back from the watcher.
func (c *conn) unwatch() {
	ended := c.setHandled(false)
	if ended == nil {
		return
	}
	// An error of either means that the connection is closed: the watcher ends
	// by itself, and the next read says so.
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
	<-ended
	_ = c.net.SetReadDeadline(time.Time{})
}

// setHandled returns the watcher's channel, if there is one, and forgets it.
func (c *conn) setHandled(handled bool) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.watched
	c.handled, c.watched = handled, nil
	return ended
}

// source is the connection as the buffer reads it, bounded while a header is
// read.
type source struct {
	net  net.Conn
	left int64 // bytes
}

func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errHeaderTooLong
	}
	n, err := s.net.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}

// body is the body of the request at hand.
type body struct {
	conn     *conn
	source   io.Reader
	left     int64       // bytes; -1 if the length was not declared
	awaiting bool        // the client holds it back until told to continue
	ended    atomic.Bool // read to its end; the watcher may have the buffer
}

func (b *body) begin(r *http.Request) {
	b.source, b.left = r.Body, r.ContentLength
	b.ended.Store(r.Body == http.NoBody)
	b.awaiting = r.Body != http.NoBody && r.ProtoAtLeast(1, 1) && expectsContinue(r)
	r.Body = b
}

// Read answers 100 Continue first where the client waits for it.
func (b *body) Read(p []byte) (int, error) {
	if b.ended.Load() {
		return 0, io.EOF
	}
	if b.awaiting {
		b.awaiting = false
		if _, err := io.WriteString(b.conn.net, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return 0, err
		}
	}
	n, err := b.source.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// Close does nothing: settle reads the rest.
func (b *body) Close() error { return nil }

// settle reads what the handler left, and reports whether the next request is
// what comes next on the connection.
func (b *body) settle() bool {
	if b.ended.Load() {
		return true
	}
	if b.awaiting || b.left > drainMax {
		return false
	}
	_, err := io.CopyN(io.Discard, b, drainMax+1)
	return errors.Is(err, io.EOF)
}
