package httpconnect

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// Server is the side that is called. It is safe for concurrent use.
type Server struct {
	backend transport.Backend
	now     func() time.Time

	mu     sync.Mutex
	tokens map[string]token

	streams atomic.Int64
}

// Streams counts those that are open.
func (s *Server) Streams() int { return int(s.streams.Load()) }

// token is a leave that was granted and is not used yet.
type token struct {
	peer    identity.Name
	request transport.Request
	until   time.Time
}

// NewServer makes one that asks for backends so.
func NewServer(backend transport.Backend, now func() time.Time) *Server {
	return &Server{backend: backend, now: now, tokens: map[string]token{}}
}

// Serve answers a peer on a connection whose handshake is done, until it ends.
func (s *Server) Serve(conn *tls.Conn, peer identity.Name) error {
	in := newBounded(conn)
	for {
		r, err := nextRequest(conn, in)
		if err != nil {
			return err
		}
		if r.Method == http.MethodConnect {
			return s.stream(conn, in, peer, r)
		}
		if err := s.leave(conn, peer, r); err != nil {
			return err
		}
	}
}

// nextRequest waits until one begins, for as long as that takes: who calls keeps connections. Its
// rest, and its body, are to come in time.
func nextRequest(conn *tls.Conn, in *bounded) (*http.Request, error) {
	_ = conn.SetReadDeadline(time.Time{}) // of one that is over reading tells
	in.message()
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	r, err := http.ReadRequest(in.Reader)
	return r, in.why(err)
}

// leave answers who asks for it.
func (s *Server) leave(conn *tls.Conn, peer identity.Name, r *http.Request) error {
	var l leave
	body := io.LimitReader(r.Body, bodyMax)
	if r.Method != http.MethodPost || r.URL.Path != leavePath || json.NewDecoder(body).Decode(&l) != nil {
		return errors.Join(respond(conn, http.StatusBadRequest, nil), fmt.Errorf("a request %s %s: %w", r.Method, r.URL.Path, transport.ErrProtocol))
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	request := transport.Request{Target: l.Target, Source: l.Source, Client: l.Client, Traffic: transport.NewTraffic(s.now())}
	if err := s.backend.Allow(peer, request); err != nil {
		return respond(conn, http.StatusForbidden, refused{transport.CodeOf(err)})
	}
	text, ok := s.grant(peer, request)
	if !ok {
		return respond(conn, http.StatusServiceUnavailable, refused{transport.Overloaded})
	}
	return respond(conn, http.StatusOK, granted{text})
}

// grant makes a token.
func (s *Server) grant(peer identity.Name, r transport.Request) (string, bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= tokensMax {
		for text, t := range s.tokens {
			if now.After(t.until) {
				delete(s.tokens, text)
			}
		}
	}
	if len(s.tokens) >= tokensMax {
		return "", false
	}
	text := rand.Text()
	s.tokens[text] = token{peer, r, now.Add(tokenLasts)}
	return text, true
}

// use takes a token away.
func (s *Server) use(text string, peer identity.Name) (transport.Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.tokens[text]
	delete(s.tokens, text)
	return t.request, known && t.peer == peer && !s.now().After(t.until)
}

// stream opens one and carries it.
func (s *Server) stream(conn *tls.Conn, in *bounded, peer identity.Name, r *http.Request) error {
	const scheme = "Bearer "
	given := r.Header.Get("Proxy-Authorization") // RFC 9110 section 11.7.1
	if len(given) < len(scheme) || given[:len(scheme)] != scheme {
		return respond(conn, http.StatusProxyAuthRequired, refused{transport.Denied})
	}
	request, ok := s.use(given[len(scheme):], peer)
	if !ok {
		return respond(conn, http.StatusProxyAuthRequired, refused{transport.Denied})
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	app, err := s.backend.Dial(ctx, peer, request)
	if err != nil {
		return respond(conn, http.StatusBadGateway, refused{transport.CodeOf(err)})
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		transport.Reset(app)
		request.Traffic.End(err)
		return err
	}
	_ = conn.SetReadDeadline(time.Time{}) // of one that is over reading tells
	in.lift()
	s.streams.Add(1)
	defer s.streams.Add(-1)
	err = transport.Relay(socket{app}, early{half{conn}, in.Reader}, request.Traffic)
	request.Traffic.End(err)
	return err
}

// early is a connection of which some bytes were read already.
type early struct {
	half
	in *bufio.Reader
}

// Read reads what was read already first.
func (e early) Read(b []byte) (int, error) { return e.in.Read(b) }

// bounded reads messages of HTTP, each up to a bound: those who read one have no other.
type bounded struct {
	*bufio.Reader
	left io.LimitedReader
}

func newBounded(conn io.Reader) *bounded {
	b := &bounded{left: io.LimitedReader{R: conn}}
	b.Reader = bufio.NewReaderSize(&b.left, headerMax)
	b.message()
	return b
}

// message lets another one be read.
func (b *bounded) message() { b.left.N = headerMax + bodyMax }

// lift ends the bound: bytes of a stream follow.
func (b *bounded) lift() { b.left.N = math.MaxInt64 }

// why reading a message failed.
func (b *bounded) why(err error) error {
	if err != nil && b.left.N <= 0 {
		return fmt.Errorf("a message of more than %d bytes: %w", headerMax+bodyMax, transport.ErrProtocol)
	}
	return err
}

// respond writes an answer.
func respond(w io.Writer, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(text), text)
	return err
}
