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
)

// plan is what all threads share: it is made before the first request and not
// written afterwards.
type plan struct {
	Spec
	// address is the target, looked up.
	address string
	// request is the whole of it, header and body, so that it is one write.
	request []byte
	// want is the expected body: nil where any will do.
	want []byte
	// wantLen is the expected length of the body, -1 where any will do.
	wantLen int
	// arrivals of an open loop: ns from its start at which each request is due.
	arrivals []int64
}

// requests is how many the load makes.
func (p *plan) requests() int {
	if p.open() {
		return len(p.arrivals)
	}
	return p.total()
}

func newPlan(ctx context.Context, s Spec) (*plan, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	address, err := resolve(ctx, s.Target)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", s.Target, err)
	}
	p := &plan{Spec: s, address: address, wantLen: -1}
	method, path, body := http.MethodGet, "/", []byte(nil)
	switch s.Workload {
	case workload.PayloadEcho:
		method, body = http.MethodPost, payload(s.Size, s.Seed)
		p.want, p.wantLen = body, len(body)
	case workload.PayloadRecv:
		method, body = http.MethodPost, payload(s.Size, s.Seed)
	case workload.StaticReply:
		p.wantLen = workload.StaticReplyLen
	case workload.Sleep:
		method, body = http.MethodPost, []byte(decimal(float64(s.Time)/1e6))
	case workload.Burn:
		path = "/?ms=" + decimal(float64(s.Time)/1e6) + "&mb=" + decimal(float64(s.Memory)/1e6)
	}
	if p.open() {
		p.arrivals = arrivals(s)
	}
	p.request = p.format(method, path, body)
	return p, nil
}

func (p *plan) format(method, path string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: skerry-agent\r\n", method, path, p.Target)
	if method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n", len(body))
	}
	if p.Connection == New {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
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
func resolve(ctx context.Context, target string) (string, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%w: %q is no port", ErrSpec, port)
	}
	// The header line holds the host as written.
	if i := bytes.IndexFunc([]byte(host), func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 || host == "" {
		return "", fmt.Errorf("%w: %q is no host", ErrSpec, host)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return net.JoinHostPort(a.String(), port), nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addrs[0].Unmap().String(), port), nil
}
