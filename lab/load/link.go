package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"skerry.dev/skerry/internal/clock"
)

const (
	// readChunk is the reader's buffer: an answer up to this long is one read.
	readChunk = 16 << 10
	// headerMax bounds what an answer may bring beside the body: headers,
	// interim answers, chunk sizes.
	headerMax = 1 << 20
	// interimMax bounds the 1xx answers before the final one.
	interimMax = 8
)

var (
	errTooLong   = errors.New("answer is over its bound")
	errTrailing  = errors.New("bytes after the answer")
	errShortHead = errors.New("answer ends within its header")
	errShortBody = errors.New("answer ends within its body")
	errNoAnswer  = errors.New("connection closed before an answer")
	errMalformed = errors.New("not HTTP/1.1")
)

// link is a thread's way to the target: one connection after the other. The
// zero value is closed.
type link struct {
	// number of the current connection, or of the dial that failed, from 1;
	// index of the current request on it, from 1.
	number, index int32
	// firstByte is CLOCK_MONOTONIC ns when the first byte of the current
	// answer was read, 0 before that.
	firstByte int64
	// lastByte is when bytes were last read.
	lastByte int64
	// ended means that the target has closed its direction.
	ended bool

	conn   net.Conn
	reader *bufio.Reader
	// budget is how many bytes of the current answer may still be read.
	budget int
	// unwatch ends the watch that closes conn when ctx ends.
	unwatch func() bool
}

// answer is an HTTP answer whose body, of that length, lies in the caller's
// buffer. last means that the connection carries no other.
type answer struct {
	status, length int
	last           bool
}

// extend gives the connection, where there is one, the deadline of the request
// that follows.
func (l *link) extend(deadline time.Time) error {
	if l.conn == nil {
		return nil
	}
	return l.conn.SetDeadline(deadline)
}

// ready dials where there is no connection, and numbers the request that
// follows.
func (l *link) ready(ctx context.Context, address string, deadline time.Time) error {
	l.index++
	if l.conn != nil {
		return nil
	}
	l.number, l.index = l.number+1, 1
	if err := l.dial(ctx, address, deadline); err != nil {
		return err
	}
	return l.extend(deadline)
}

func (l *link) dial(ctx context.Context, address string, deadline time.Time) error {
	// TCP_NODELAY is Go's default. Keep-alive probes would be packets that the
	// experiment did not ask for.
	d := net.Dialer{Deadline: deadline, KeepAlive: -1}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	l.conn, l.ended = conn, false
	l.unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if l.reader == nil {
		l.reader = bufio.NewReaderSize(l, readChunk)
	}
	l.reader.Reset(l)
	return nil
}

// close ends the connection, if there is one.
func (l *link) close() {
	if l.conn == nil {
		return
	}
	l.unwatch()
	// The answer is in or lost: an error here changes neither.
	_ = l.conn.Close()
	l.conn = nil
}

// exchange writes the request in one write and reads the answer's body into
// buf. It reads only once all is written, so a server that answers a body
// larger than the socket buffers before it has read it runs into the timeout.
func (l *link) exchange(request, buf []byte) (answer, error) {
	l.firstByte, l.lastByte, l.budget = 0, 0, len(buf)+headerMax
	if _, err := l.conn.Write(request); err != nil {
		return answer{}, err
	}
	return l.receive(buf)
}

// receive reads one final answer, after any interim ones.
func (l *link) receive(buf []byte) (answer, error) {
	var head *http.Response
	for range interimMax {
		var err error
		// No request: read as the answer to a GET, which all methods here share.
		head, err = http.ReadResponse(l.reader, nil) //nolint:bodyclose // fill reads the body to its end; closing it does nothing more
		if err != nil {
			return answer{}, l.headError(err)
		}
		if head.StatusCode >= 200 || head.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	if head.StatusCode < 200 {
		return answer{}, errMalformed
	}
	got := answer{status: head.StatusCode, last: head.Close}
	var err error
	if got.length, err = fill(head.Body, buf); err != nil {
		return got, bodyError(err)
	}
	// Where the end of the connection ends the body, there can be none.
	if l.reader.Buffered() > 0 {
		return got, errTrailing
	}
	return got, nil
}

func (l *link) headError(err error) error {
	switch {
	case ofSocket(err):
		return err
	case l.ended && l.firstByte == 0:
		return errNoAnswer
	case l.ended:
		return errShortHead
	}
	return errMalformed
}

func bodyError(err error) error {
	switch {
	case ofSocket(err):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errShortBody
	}
	return errMalformed
}

// ofSocket reports an error that Read gave; any other is the parser's.
func ofSocket(err error) bool {
	var e net.Error
	return errors.As(err, &e) || errors.Is(err, errTooLong)
}

// fill reads all of a body. A body that fills buf to the brim is too long.
func fill(body io.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		k, err := body.Read(buf[n:])
		n += k
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, errTooLong
}

// Read is the reader's way to the socket; it stamps the first byte and the
// last so far, before anything is made of them.
func (l *link) Read(p []byte) (int, error) {
	if l.budget <= 0 {
		return 0, errTooLong
	}
	n, err := l.conn.Read(p)
	if n > 0 {
		l.lastByte = clock.Mono()
	}
	if l.firstByte == 0 {
		l.firstByte = l.lastByte
	}
	l.budget -= n
	l.ended = l.ended || errors.Is(err, io.EOF)
	return n, err
}
