package workload

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

const (
	// gatherMin is the length in bytes from which a body is sent from where it
	// is (writev) and not copied behind its header: below, the copy is cheaper.
	gatherMin = 16 << 10
	// keepMax bounds the memory that a connection keeps for the next answer.
	keepMax = 64 << 10
)

// reply collects one answer and sends it by one write: from Write when that
// completes a long body of declared length, so that it need not be copied, else
// from end.
type reply struct {
	conn   *conn
	header http.Header
	out    bytes.Buffer // status line and header, and a short body
	body   bytes.Buffer // what the handler has written
	status int          // 0 until set
	head   bool         // the method is HEAD: no body is sent
	minor  int          // of the version, HTTP/1.minor
	sent   bool
	last   bool // the connection ends after this answer
}

func (a *reply) begin(r *http.Request) {
	clear(a.header)
	a.body.Reset()
	a.status, a.sent = 0, false
	a.head, a.minor, a.last = r.Method == http.MethodHead, min(r.ProtoMinor, 1), r.Close
}

// Header returns the header; it is read when the answer is sent.
func (a *reply) Header() http.Header { return a.header }

// WriteHeader sets the status. The first call counts; informational answers are
// the server's own, and are ignored here.
func (a *reply) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("status %d is not of three digits", status))
	}
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write adds to the body. The errors are http.ErrBodyNotAllowed,
// http.ErrContentLength for what follows an answer that was complete, or the
// connection's.
func (a *reply) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case len(p) == 0:
		return 0, nil
	case !a.bodyAllowed():
		return 0, http.ErrBodyNotAllowed
	case a.sent:
		return 0, http.ErrContentLength
	case a.completes(p):
		return len(p), a.send(p)
	}
	return a.body.Write(p)
}

// completes reports whether p is a whole body that is worth sending from where
// it is. What the client still sends must be read first (see conn.answer).
func (a *reply) completes(p []byte) bool {
	return len(p) >= gatherMin && a.body.Len() == 0 && !a.head && a.conn.body.ended.Load() &&
		a.header.Get("Content-Length") == strconv.Itoa(len(p))
}

func (a *reply) bodyAllowed() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// end sends the answer unless Write has.
func (a *reply) end() {
	a.WriteHeader(http.StatusOK)
	if !a.sent {
		// An error has set last, and there is nobody to tell.
		_ = a.send(a.body.Bytes())
	}
	if a.body.Cap() > keepMax {
		a.body = bytes.Buffer{}
	}
}

// send writes header and body at once. An error ends the connection.
func (a *reply) send(body []byte) error {
	a.sent = true
	a.frame(len(body))
	a.out.Reset()
	fmt.Fprintf(&a.out, "HTTP/1.%d %d %s\r\n", a.minor, a.status, http.StatusText(a.status))
	_ = a.header.Write(&a.out)
	a.out.WriteString("\r\n")
	if a.head {
		body = nil
	}
	var err error
	if len(body) < gatherMin {
		a.out.Write(body)
		_, err = a.conn.net.Write(a.out.Bytes())
	} else {
		parts := net.Buffers{a.out.Bytes(), body}
		_, err = parts.WriteTo(a.conn.net)
	}
	if err != nil {
		a.last = true
	}
	return err
}

// frame sets the fields that say where the answer ends and whether another may
// follow (RFC 9112 §6 and §9.3).
func (a *reply) frame(length int) {
	h := a.header
	h.Del("Transfer-Encoding")
	declared := h.Get("Content-Length")
	switch {
	case !a.bodyAllowed():
		h.Del("Content-Length")
	case a.head && length == 0 && declared != "":
		// The handler says how long the body of a GET would be.
	case declared != strconv.Itoa(length):
		h.Set("Content-Length", strconv.Itoa(length))
	}
	if h.Get("Connection") == "close" || a.conn.server.stopping.Load() {
		a.last = true
	}
	switch {
	case a.last:
		h.Set("Connection", "close")
	case a.minor == 0:
		h.Set("Connection", "keep-alive")
	default:
		h.Del("Connection")
	}
}
