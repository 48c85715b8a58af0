package load

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// script is a connection that has this much to say and takes anything.
type script struct{ text io.Reader }

func (s script) Read(p []byte) (int, error) { return s.text.Read(p) }
func (script) Write(p []byte) (int, error)  { return len(p), nil }
func (script) Close() error                 { return nil }

// scripted is a link of that protocol to a script.
func scripted(p protocol, text io.Reader) *link {
	l := &link{routine: &routine{loop: &loop{watch: newStopWatch()}}, protocol: p, conn: script{text: text}}
	p.begin(l)
	return l
}

// endless answers without end; the budget must stop it.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

func TestEndlessAnswersAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"one line": "a",
		"interim":  "HTTP/1.1 100 Continue\r\n\r\n",
	} {
		l := scripted(&http1{}, endless{text})
		if got, err := l.exchange(make([]byte, 100)); err == nil {
			t.Errorf("%s: taken as an answer: %+v", name, got)
		}
	}
	l := scripted(&http1{}, io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), endless{"a: b\r\n"}))
	if _, err := l.exchange(make([]byte, 100)); class(err) != classLongBody || l.budget < -readChunk {
		t.Errorf("endless header: error %v with a budget of %d", err, l.budget)
	}
}

// A peer that sends empty datagrams for ever must be stopped by the budget, too.
func TestEmptyDatagramsAreBounded(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(unix.Close(ends[0]), unix.Close(ends[1])) })
	const left = 3
	d := newDatagrams([]byte("x"))
	l := &link{socket: &socket{fd: ends[0], readable: true}, budget: left * datagramCost}
	for n := range left + 1 {
		if err := unix.Send(ends[1], nil, 0); err != nil {
			t.Fatal(err)
		}
		_, _, err := d.tryReceive(l, make([]byte, 2))
		if bounded := errors.Is(err, errTooLong); bounded != (n == left) {
			t.Errorf("datagram %d with room for %d: %v", n+1, left, err)
		}
	}
}

// FuzzReceive holds that no answer panics or reads past its bound, and that an
// answer that is taken lies within the buffer.
func FuzzReceive(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	f.Add("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.0 204 No Content\r\n\r\n")
	f.Add("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := scripted(&http1{}, strings.NewReader(text))
		got, err := l.exchange(make([]byte, 64))
		if got.length < 0 || got.length > 64 {
			t.Errorf("a body of %d bytes in a buffer of 64", got.length)
		}
		if err == nil && (got.status < 200 || got.length == 64 || l.firstByte == 0) {
			t.Errorf("taken as an answer: %+v, first byte at %d", got, l.firstByte)
		}
		if err != nil && class(err) == classOther {
			t.Errorf("error of no class: %v", err)
		}
	})
}

// FuzzPlainHead holds that a head which plainHead takes is one of an answer of
// that status and length to net/http as well, on a connection that goes on.
func FuzzPlainHead(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 404 \r\ncontent-length:0\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 \n\r\nContent-Length:00\r\n\r\n",
		"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nno colon\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, status, length, ok := plainHead([]byte(text))
		if !ok {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text[:size])), nil)
		if err != nil {
			t.Fatalf("taken, but not by net/http: %v", err)
		}
		defer theirs.Body.Close()
		if theirs.StatusCode != status || theirs.ContentLength != int64(length) || theirs.Close || theirs.TransferEncoding != nil {
			t.Errorf("taken as status %d and %d bytes, by net/http as %+v", status, length, theirs)
		}
	})
}
