package load

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// answerOverhead bounds what an answer may bring beside the body, in bytes:
// headers, interim answers, chunk sizes, frames of other kinds.
const answerOverhead = 1 << 20

var (
	errTooLong   = errors.New("answer is over its bound")
	errTrailing  = errors.New("bytes after the answer")
	errShortHead = errors.New("answer ends within its header")
	errShortBody = errors.New("answer ends within its body")
	errNoAnswer  = errors.New("connection closed before an answer")
	errMalformed = errors.New("not the protocol")
	errRefused   = errors.New("stream ended by the peer")
	errDenied    = errors.New("refused by the broker")
)

// protocol is how a thread speaks on its connections, one after the other.
type protocol interface {
	// begin forgets the connection before, and readies l, a new one, for its first
	// request: what that costs counts as the dial.
	begin(l *link) error
	// exchange sends a request and reads the answer's body into buf, which is a
	// byte longer than the answer that is expected.
	exchange(l *link, buf []byte) (answer, error)
}

// answer is what came back: a body of that length in the caller's buffer. last
// means that the connection carries no other.
type answer struct {
	// status of HTTP, 0 in other protocols.
	status, length int
	last           bool
	stamps         stamps
}

// link is a thread's way to the target: one connection after the other. It is
// closed until the first request.
type link struct {
	routine  *routine
	protocol protocol
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

	// conn is the socket, nil while closed; tests put another in its place.
	conn   io.ReadWriteCloser
	socket *socket
	// budget is how many bytes of the current answer may still be read.
	budget int
}

// ready dials where there is no connection, or one that the target has closed since its
// last answer, and numbers the request that follows. The deadline is that of the request,
// in CLOCK_MONOTONIC ns.
func (l *link) ready(address netip.AddrPort, deadline int64) error {
	if l.conn != nil && l.socket.stream && l.socket.hungUp {
		l.close()
	}
	l.index++
	if l.conn != nil {
		l.socket.deadline = deadline
		return nil
	}
	l.number, l.index = l.number+1, 1
	kind := unix.SOCK_STREAM
	if _, ok := l.protocol.(*datagrams); ok {
		kind = unix.SOCK_DGRAM
	}
	s, err := l.routine.dial(address, kind, deadline)
	if err != nil {
		return err
	}
	l.conn, l.socket, l.ended, l.budget = s, s, false, answerOverhead
	if err := l.protocol.begin(l); err != nil {
		l.close()
		return err
	}
	return nil
}

// close ends the connection, if there is one.
func (l *link) close() {
	if l.conn == nil {
		return
	}
	// The answer is in or lost: an error here changes neither.
	_ = l.conn.Close()
	l.conn = nil
}

// exchange does one request on the connection.
func (l *link) exchange(buf []byte) (answer, error) {
	l.firstByte, l.lastByte, l.budget = 0, 0, len(buf)+answerOverhead
	return l.protocol.exchange(l, buf)
}

// outlives reports that the connection is as good as before in spite of an
// error: a datagram that was lost says nothing of the next.
func (l *link) outlives(err error) bool {
	_, ok := l.protocol.(*datagrams)
	return ok && errors.Is(err, os.ErrDeadlineExceeded)
}

// Read is a protocol's way to the socket; it stamps the first byte and the
// last so far, before anything is made of them.
func (l *link) Read(p []byte) (int, error) {
	if l.budget <= 0 {
		return 0, errTooLong
	}
	n, err := l.conn.Read(p)
	l.stamp(n)
	l.ended = l.ended || errors.Is(err, io.EOF)
	return n, err
}

// stamp notes that n bytes have just been read.
func (l *link) stamp(n int) {
	if n > 0 {
		l.lastByte = l.routine.loop.watch.now()
	}
	if l.firstByte == 0 {
		l.firstByte = l.lastByte
	}
	l.budget -= n
}

// starts notes that a packet starts here, behind a protocol's reader: what came
// with the last read has been there since then, anything else comes with the next.
func (l *link) starts(r *bufio.Reader) {
	l.firstByte = 0
	if r.Buffered() > 0 {
		l.firstByte = l.lastByte
	}
}

// ofSocket reports an error that Read gave; any other is the parser's.
func ofSocket(err error) bool {
	var e net.Error
	return errors.As(err, &e) || errors.Is(err, errTooLong) || errors.Is(err, errStopped)
}
