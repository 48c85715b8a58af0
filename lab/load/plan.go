package load

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// aims are the targets, first the one that each thread begins with, by their numbers.
	aims    []*aim
	first   []int
	message Message
	// want is the expected body: nil where any will do.
	want []byte
	// wantLen is the expected length of the body, -1 where any will do.
	wantLen int
	// arrivals of an open loop: ns from its start at which each request is due.
	arrivals []int64
	// most is how many requests a loop by time may make.
	most int
}

// aim is whom a thread asks.
type aim struct {
	// address is the target, looked up.
	address netip.AddrPort
	// wire is the message as the protocol sends it: all of it, but the header
	// alone of HTTP/2, where frames go between.
	wire []byte
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

// requests is how many the load makes, by time at most.
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
	m := s.Message()
	p := &plan{Spec: s, message: m, wantLen: -1, most: samplesMax}
	for i, t := range s.targets() {
		a, err := p.aimAt(ctx, t.Target)
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", t.Target, err)
		}
		p.aims = append(p.aims, a)
		p.first = append(p.first, slices.Repeat([]int{i}, t.Threads)...)
	}
	switch s.Workload {
	case workload.PayloadEcho, broker.Mosquitto, broker.RabbitMQ:
		p.want, p.wantLen = m.Body, len(m.Body)
	case workload.StaticReply:
		p.wantLen = workload.StaticReplyLen
	}
	if p.open() {
		p.arrivals = arrivals(s)
	}
	return p, nil
}

// aimAt looks a target up and words the message to it.
func (p *plan) aimAt(ctx context.Context, target string) (*aim, error) {
	address, err := resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	a := &aim{address: address}
	switch p.Protocol {
	case workload.HTTP2:
		a.wire = formatHTTP2(target, p.message)
	case workload.TCP, workload.UDP, broker.MQTT, broker.AMQP:
		a.wire = p.message.Body
	default:
		a.wire = formatHTTP1(target, p.message, p.Connection == New)
	}
	return a, nil
}

// aim is whom a thread asks some time after the beginning.
func (p *plan) aim(thread int32, after time.Duration) *aim {
	i := p.first[thread]
	if p.Rotate > 0 {
		i += int(after / p.Rotate.Std())
	}
	return p.aims[i%len(p.aims)]
}

// protocol gives a thread its own.
func (p *plan) protocol(a *aim) protocol {
	switch p.Protocol {
	case workload.HTTP2:
		return &http2Link{message: p.message, fields: a.wire}
	case workload.TCP:
		return &stream{request: a.wire}
	case workload.UDP:
		return newDatagrams(a.wire)
	case broker.MQTT:
		return &mqttLink{body: a.wire}
	case broker.AMQP:
		return &amqpLink{body: a.wire}
	}
	return &http1{request: a.wire}
}

// startsAfter is how long a thread waits at the beginning: they start evenly over the
// ramp.
func (p *plan) startsAfter(thread int) time.Duration {
	return p.Ramp.Std() * time.Duration(thread) / time.Duration(p.threads())
}

// names are those of all targets.
func (p *plan) names() string {
	var names []string
	for _, t := range p.targets() {
		names = append(names, t.Target)
	}
	return strings.Join(names, ", ")
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
