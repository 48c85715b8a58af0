// Package workload is the applications that the lab serves, each an
// http.Handler that answers at any path:
//
//   - payload-echo and payload-recv are the functions of the inter-cluster
//     comparison (EXPERIMENTS.md, ICC-F3 to F8): a body comes back whole, or
//     is read and answered without one.
//   - static-reply is that paper's third: always the same 1000 bytes (ICC-F9).
//   - hello-world is the function of CRT-F3: the shortest answer.
//   - sleep is INL's: it waits as long as the request says and uses no CPU.
//   - burn is Skerry's own (DESIGN.md): it uses thread CPU time and memory, so
//     that a balancer's thresholds trip.
//
// It measures nothing but when a datagram came and went, keeps no state between
// requests and logs nothing. Start at Handler; server.go serves one, by
// connections of our own (conn.go, reply.go) because the server's time is in
// every response time, http2.go by those of a library; echo.go is payload-echo
// over TCP and UDP.
package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of the workloads.
const (
	PayloadEcho = "payload-echo"
	PayloadRecv = "payload-recv"
	StaticReply = "static-reply"
	HelloWorld  = "hello-world"
	Sleep       = "sleep"
	Burn        = "burn"
)

// Protocols by which a workload is served: HTTP/2 is without TLS, by prior
// knowledge; TCP and UDP carry payload-echo alone, without any framing.
const (
	HTTP1 = "http/1.1"
	HTTP2 = "http/2"
	TCP   = "tcp"
	UDP   = "udp"
)

// Protocols lists them.
func Protocols() []string { return []string{HTTP1, HTTP2, TCP, UDP} }

// Bounds of one request; what is over them is answered 413 (body) or 400.
const (
	// BodyMax is the longest body in bytes.
	BodyMax = 64 << 20
	// SleepMax is the longest sleep.
	SleepMax = time.Hour
	// BurnMax is the most CPU time.
	BurnMax = time.Minute
	// MemoryMax is the most memory in bytes.
	MemoryMax = 4e9
)

// StaticReplyLen is the length of static-reply's body in bytes.
const StaticReplyLen = 1000

// ErrUnknown is returned for a name that is no workload.
var ErrUnknown = errors.New("no such workload")

// Names lists the workloads in the order of the package doc.
func Names() []string {
	return []string{PayloadEcho, PayloadRecv, StaticReply, HelloWorld, Sleep, Burn}
}

// Handler makes the workload of that name. Bad input is answered 400 with one
// line. The error is ErrUnknown.
func Handler(name string) (http.Handler, error) {
	switch name {
	case PayloadEcho:
		return &echo{}, nil
	case PayloadRecv:
		return &recv{}, nil
	case StaticReply:
		return static(staticReply()), nil
	case HelloWorld:
		return static("hello, world\n"), nil
	case Sleep:
		return http.HandlerFunc(sleep), nil
	case Burn:
		return http.HandlerFunc(burn), nil
	}
	return nil, fmt.Errorf("%w: %q is none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// echo answers the request's body. It reads the whole of it first, as the
// paper's function does, so a response time is RTT + 2 × serialisation.
type echo struct {
	// buffers spares the collector: a fresh buffer per request would cost more
	// than the echo.
	buffers sync.Pool
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := e.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	defer e.buffers.Put(b)
	b.Reset()
	if r.ContentLength > BodyMax {
		refuseBody(w, &http.MaxBytesError{Limit: BodyMax})
		return
	}
	// MinRead more, for ReadFrom grows the buffer when it has less than that.
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, BodyMax)); err != nil {
		refuseBody(w, err)
		return
	}
	answer(w, b.Bytes())
}

// recv reads the request's body and answers without one.
type recv struct{ buffers sync.Pool }

// recvChunk is how much recv reads at once: io.Discard would take 8 KiB.
const recvChunk = 64 << 10

func (h *recv) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > BodyMax {
		refuseBody(w, &http.MaxBytesError{Limit: BodyMax})
		return
	}
	chunk, ok := h.buffers.Get().(*[recvChunk]byte)
	if !ok {
		chunk = new([recvChunk]byte)
	}
	defer h.buffers.Put(chunk)
	body := http.MaxBytesReader(w, r.Body, BodyMax)
	for {
		_, err := body.Read(chunk[:])
		if err == io.EOF {
			return
		}
		if err != nil {
			refuseBody(w, err)
			return
		}
	}
}

// static answers the same bytes to every request.
type static string

func (s static) ServeHTTP(w http.ResponseWriter, _ *http.Request) { answer(w, []byte(s)) }

// staticReply is text that does not compress, the same in every process.
func staticReply() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(StaticReplyLen, 0))
	b := make([]byte, StaticReplyLen)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// sleepBodyMax bounds the text of a number in a body.
const sleepBodyMax = 64

// sleep waits as many milliseconds as ?ms= or else the body says. It is up to
// a millisecond late, as timers of the Go runtime are.
func sleep(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("ms")
	if text == "" {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sleepBodyMax))
		if err != nil {
			refuseBody(w, err)
			return
		}
		text = string(bytes.TrimSpace(body))
	}
	d, err := parseMillis(text, SleepMax)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func answer(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// An error means that the client has gone: there is nobody to tell.
	_, _ = w.Write(body)
}

// refuseBody answers a body that could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		text := fmt.Sprintf("body is over the bound of %d bytes", tooLong.Limit)
		http.Error(w, text, http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "body ends early", http.StatusBadRequest)
}

// parseMillis reads a decimal number of milliseconds.
func parseMillis(text string, bound time.Duration) (time.Duration, error) {
	v, err := parseNumber(text, float64(bound/time.Millisecond))
	if err != nil {
		return 0, fmt.Errorf("ms: %w", err)
	}
	return time.Duration(v * float64(time.Millisecond)), nil
}

// parseNumber reads a decimal number in [0, bound].
func parseNumber(text string, bound float64) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	// Written so that NaN is refused too.
	if err != nil || !(v >= 0 && v <= bound) {
		return 0, fmt.Errorf("%.40q is not a number from 0 to %.0f", text, bound)
	}
	return v, nil
}
