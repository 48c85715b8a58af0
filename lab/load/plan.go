package load

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
	"skerry.dev/skerry/lab/workload/broker"
)

const userAgent = "skerry-agent"

// ContentType of every body that a load sends.
const ContentType = "application/octet-stream"

// plan is what all threads share: it is made before the first request and not
// written afterwards.
type plan struct {
	Spec
	// address is the target, looked up.
	address netip.AddrPort
	message Message
	// wire is the message as the protocol sends it: all of it, but the header
	// alone of HTTP/2, where frames go between.
	wire []byte
	// want is the expected body: nil where any will do.
	want []byte
	// wantLen is the expected length of the body, -1 where any will do.
	wantLen int
	// arrivals of an open loop: ns from its start at which each request is due.
	arrivals []int64
}

// Message is a request as the workload sees it.
type Message struct {
	Method, Path string
	// Body of a POST; a GET has none.
	Body []byte
}

// Message of a load: all of its requests are the same.
func (s Spec) Message() Message {
	m := Message{Method: http.MethodGet, Path: "/"}
	switch s.Workload {
	case workload.PayloadEcho, workload.PayloadRecv, broker.Mosquitto, broker.RabbitMQ:
		m.Method, m.Body = http.MethodPost, payload(s.Size, s.Seed)
	case workload.Sleep:
		m.Method, m.Body = http.MethodPost, []byte(decimal(float64(s.Time)/1e6))
	case workload.Burn:
		m.Path = "/?ms=" + decimal(float64(s.Time)/1e6) + "&mb=" + decimal(float64(s.Memory)/1e6)
	}
	return m
}

// requests is how many the load makes.
func (p *plan) requests() int {
	if p.open() {
		return len(p.arrivals)
	}
	return p.total()
}

// stamps reports whether datagrams carry times.
func (p *plan) stamps() bool {
	return p.Protocol == workload.UDP && p.Size >= workload.DatagramHeader
}

func newPlan(ctx context.Context, s Spec) (*plan, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	address, err := resolve(ctx, s.Target)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", s.Target, err)
	}
	m := s.Message()
	p := &plan{Spec: s, address: address, message: m, wantLen: -1}
	switch s.Workload {
	case workload.PayloadEcho, broker.Mosquitto, broker.RabbitMQ:
		p.want, p.wantLen = m.Body, len(m.Body)
	case workload.StaticReply:
		p.wantLen = workload.StaticReplyLen
	}
	if p.open() {
		p.arrivals = arrivals(s)
	}
	switch s.Protocol {
	case workload.HTTP2:
		p.wire = formatHTTP2(p.Target, m)
	case workload.TCP, workload.UDP, broker.MQTT, broker.AMQP:
		p.wire = m.Body
	default:
		p.wire = formatHTTP1(p.Target, m, p.Connection == New)
	}
	return p, nil
}

// protocol gives a thread its own.
func (p *plan) protocol() protocol {
	switch p.Protocol {
	case workload.HTTP2:
		return &http2Link{message: p.message, fields: p.wire}
	case workload.TCP:
		return &stream{request: p.wire}
	case workload.UDP:
		return newDatagrams(p.wire)
	case broker.MQTT:
		return &mqttLink{body: p.wire}
	case broker.AMQP:
		return &amqpLink{body: p.wire}
	}
	return &http1{request: p.wire}
}

// payload is random, so that nothing on the way can compress it.
func payload(n quantity.Size, seed uint64) []byte {
	b := make([]byte, n)
	var key [32]byte
	copy(key[:], strconv.FormatUint(seed, 10))
	// ChaCha8 does not fail.
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// resolve looks a target up once, so that no request is charged for DNS.
func resolve(ctx context.Context, target string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return netip.AddrPort{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q is no port", ErrSpec, port)
	}
	// The header line holds the host as written.
	if i := bytes.IndexFunc([]byte(host), func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 || host == "" {
		return netip.AddrPort{}, fmt.Errorf("%w: %q is no host", ErrSpec, host)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(addrs[0].Unmap(), uint16(n)), nil
}
