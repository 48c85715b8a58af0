package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// readChunk is the reader's buffer: an answer up to this long is one read.
	readChunk = 16 << 10
	// interimMax bounds the 1xx answers before the final one.
	interimMax = 8
)

// http1 speaks HTTP/1.1 (RFC 9112).
type http1 struct {
	// request is the whole of it, header and body, so that it is one write.
	request []byte
	reader  *bufio.Reader
}

// formatHTTP1 is a request of that target, header and body.
func formatHTTP1(target string, m Message, last bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", m.Method, m.Path, target, userAgent)
	if m.Method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Type: %s\r\nContent-Length: %d\r\n", ContentType, len(m.Body))
	}
	if last {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	b.Write(m.Body)
	return b.Bytes()
}

func (h *http1) begin(l *link) error {
	if h.reader == nil {
		h.reader = bufio.NewReaderSize(l, readChunk)
	}
	h.reader.Reset(l)
	return nil
}

// exchange reads only once all is written, so a server that answers a body
// larger than the socket buffers before it has read it runs into the timeout.
func (h *http1) exchange(l *link, buf []byte) (answer, error) {
	if _, err := l.conn.Write(h.request); err != nil {
		return answer{}, err
	}
	return h.receive(l, buf)
}

// receive reads one answer: the plain kind, which is nearly every one, by
// itself, any other by net/http.
func (h *http1) receive(l *link, buf []byte) (answer, error) {
	if _, err := h.reader.Peek(1); err != nil {
		return answer{}, headError(l, err)
	}
	var got answer
	var err error
	head, _ := h.reader.Peek(h.reader.Buffered()) // what is buffered can be seen
	if size, status, length, ok := plainHead(head); ok && length < len(buf) {
		got.status = status
		_, _ = h.reader.Discard(size) // it is buffered
		got.length, err = io.ReadFull(h.reader, buf[:length])
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	} else if got, err = h.other(l, buf); got.status == 0 {
		return got, err
	}
	if err != nil {
		return got, bodyError(err)
	}
	// Where the end of the connection ends the body, there can be none.
	if h.reader.Buffered() > 0 {
		return got, errTrailing
	}
	return got, nil
}

// other reads one final answer, after any interim ones. An error beside a status
// is one of the body.
func (h *http1) other(l *link, buf []byte) (answer, error) {
	var head *http.Response
	for range interimMax {
		var err error
		// No request: read as the answer to a GET, which all methods here share.
		head, err = http.ReadResponse(h.reader, nil) //nolint:bodyclose // fill reads the body to its end; closing it does nothing more
		if err != nil {
			return answer{}, headError(l, err)
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
	got.length, err = fill(head.Body, buf)
	return got, err
}

// plainHead reads the head of an answer of HTTP/1.1 whose body has the length
// that Content-Length says and which does not speak of the connection; ok means
// that the head is all of that, whole, and beyond doubt. net/http takes 2 µs and
// 10 allocations for the same.
func plainHead(b []byte) (size, status, length int, ok bool) {
	const start = "HTTP/1.1 200 "
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < len(start) || string(b[:len("HTTP/1.1 ")]) != start[:len("HTTP/1.1 ")] || b[len(start)-1] != ' ' {
		return 0, 0, 0, false
	}
	if status, ok = digits(b[len("HTTP/1.1 "):len(start)-1], 3); !ok || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified {
		return 0, 0, 0, false
	}
	line, fields, _ := bytes.Cut(b[:end], []byte("\r\n"))
	if !printable(line) {
		return 0, 0, 0, false
	}
	length = -1
	for field := range bytes.SplitSeq(fields, []byte("\r\n")) {
		name, value, cut := bytes.Cut(field, []byte(":"))
		switch {
		case !cut || !plainField(name, value):
			return 0, 0, 0, false
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			n, ok := digits(bytes.Trim(value, " "), 15)
			if !ok || length >= 0 {
				return 0, 0, 0, false
			}
			length = n
		}
	}
	return end + 4, status, length, length >= 0
}

// plainField refuses what is no field at all, and those that have a say in where
// the answer or the connection ends.
func plainField(name, value []byte) bool {
	for _, c := range name {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	switch len(name) {
	case 0:
		return false
	case len("Connection"), len("Transfer-Encoding"), len("Trailer"):
		for _, says := range []string{"Connection", "Transfer-Encoding", "Trailer"} {
			if strings.EqualFold(string(name), says) {
				return false
			}
		}
	}
	return printable(value)
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// digits reads a number of 1 to most decimal digits and nothing else.
func digits(b []byte, most int) (n int, ok bool) {
	if len(b) < 1 || len(b) > most {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// headError names what broke a header.
func headError(l *link, err error) error {
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
