package httpconnect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// Dialer takes streams to one gateway of a peer. It is safe for concurrent use.
type Dialer struct {
	address string
	config  *tls.Config
	leaves  *http.Client
	dials   transport.Dials
	rtt     atomic.Int64 // ns, of the connection that was dialled last; 0 before

	mu   sync.Mutex
	open map[half]bool // the connections of streams
}

// NewDialer makes one for a gateway at HOST:PORT, whose certificate the configuration
// verifies.
func NewDialer(address string, config *tls.Config) *Dialer {
	d := &Dialer{address: address, config: config, open: map[half]bool{}}
	d.leaves = &http.Client{
		Timeout: dialTime,
		Transport: &http.Transport{
			TLSClientConfig: config, MaxIdleConnsPerHost: idleMax, MaxResponseHeaderBytes: headerMax,
		},
	}
	return d
}

// idleMax is how many connections for asking leave are kept.
const idleMax = 16

// Carry implements transport.Carrier.
func (d *Dialer) Carry(ctx context.Context, r transport.Request, app transport.Conn) error {
	conn, err := d.begin(ctx, r)
	if err != nil {
		return d.notOpened(err, app)
	}
	r.Traffic.Opened()
	if _, err := conn.Write(r.First); err != nil {
		transport.Reset(app)
		return errors.Join(err, conn.Close())
	}
	r.Traffic.ToPeer(len(r.First))
	d.mu.Lock()
	d.open[conn.half] = true
	d.mu.Unlock()
	err = transport.Relay(socket{app}, conn, r.Traffic)
	d.mu.Lock()
	delete(d.open, conn.half)
	d.mu.Unlock()
	return err
}

// begin opens a stream with the peer, and notes whether that answers.
func (d *Dialer) begin(ctx context.Context, r transport.Request) (conn early, err error) {
	token, err := d.leave(ctx, r)
	if err == nil {
		conn, err = d.connect(ctx, r, token)
	}
	answered := err
	if _, refused := errors.AsType[*transport.Refusal](err); refused {
		answered = nil
	}
	if !errors.Is(err, context.Canceled) { // which says nothing about the peer
		d.dials.Dialled(answered, time.Now())
	}
	return conn, err
}

// Health implements transport.Carrier.
func (d *Dialer) Health() transport.Health {
	d.mu.Lock()
	var conns []net.Conn
	for conn := range d.open {
		conns = append(conns, conn.Conn)
	}
	d.mu.Unlock()
	h := d.dials.Health(conns, time.Now())
	h.Settled = true
	return h
}

// Path implements transport.Carrier: nothing is opened ahead, so all that is known is
// how long the last dial took for a round trip.
func (d *Dialer) Path() transport.Path {
	return transport.Path{Ready: true, RTT: time.Duration(d.rtt.Load()), Streams: d.Streams()}
}

// Streams implements transport.Carrier.
func (d *Dialer) Streams() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// Recheck implements transport.Carrier. Connections for leave are dialled anew.
func (d *Dialer) Recheck() (refused []error) {
	d.leaves.CloseIdleConnections()
	d.mu.Lock()
	all := slices.Collect(maps.Keys(d.open))
	d.mu.Unlock()
	for _, conn := range all {
		if err := d.config.VerifyConnection(conn.ConnectionState()); err != nil {
			conn.Abort()
			refused = append(refused, err)
		}
	}
	return refused
}

// notOpened says that another way may be tried, but where the peer has refused.
func (d *Dialer) notOpened(err error, app transport.Conn) error {
	if _, ok := errors.AsType[*transport.Refusal](err); ok {
		transport.Reset(app)
		return err
	}
	return fmt.Errorf("%w: %w", transport.ErrNotOpened, err)
}

// leave asks for it.
func (d *Dialer) leave(ctx context.Context, r transport.Request) (string, error) {
	body, err := json.Marshal(leave{r.Target, r.Source, r.Client})
	if err != nil {
		return "", err
	}
	at := url.URL{Scheme: "https", Host: d.address, Path: leavePath} // which escapes the zone of an address
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := d.leaves.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for leave: %w", err)
	}
	defer answer.Body.Close()
	var g granted
	if err := read(answer, &g); err != nil {
		return "", fmt.Errorf("ask for leave: %w", err)
	}
	return g.Token, nil
}

// read reads an answer, or why it is none.
func read(answer *http.Response, into any) error {
	body := json.NewDecoder(io.LimitReader(answer.Body, bodyMax))
	if answer.StatusCode == http.StatusOK {
		return body.Decode(into)
	}
	var why refused
	if err := body.Decode(&why); err != nil || why.Code == 0 {
		return fmt.Errorf("the peer answers %s", answer.Status)
	}
	return &transport.Refusal{Code: why.Code}
}

// connect dials a connection for a stream, and opens it.
func (d *Dialer) connect(ctx context.Context, r transport.Request, token string) (early, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := (&tls.Dialer{Config: d.config}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return early{}, fmt.Errorf("dial %s: %w", d.address, err)
	}
	conn := half{raw.(*tls.Conn)}
	if info := transport.InfoOf(raw); info != nil {
		d.rtt.Store(int64(info.Rtt) * int64(time.Microsecond))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	target := net.JoinHostPort(r.Target.Name+"."+r.Target.Namespace, fmt.Sprint(r.Target.Port))
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Bearer %s\r\n\r\n", target, target, token)
	if err != nil {
		return early{}, errors.Join(err, conn.Close())
	}
	in := newBounded(conn)
	answer, err := http.ReadResponse(in.Reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return early{}, errors.Join(in.why(err), conn.Close())
	}
	defer answer.Body.Close() // of one that opens a stream there is none
	if answer.StatusCode != http.StatusOK {
		return early{}, errors.Join(read(answer, nil), conn.Close())
	}
	in.lift()
	return early{conn, in.Reader}, nil
}
