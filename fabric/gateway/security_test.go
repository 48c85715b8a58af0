package gateway_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/fabric/transport/native"
	"skerry.dev/skerry/internal/conntest"
)

// hostile is who calls a gateway and means no good.
type hostile struct {
	*testing.T
	gateway string
}

// dial shakes hands with a configuration, as far as it goes.
func (h hostile) dial(config *tls.Config) net.Conn {
	h.Helper()
	conn := tls.Client(conntest.Dial(h.T, h.gateway), config)
	_ = conn.Handshake() // TLS 1.3 tells who calls after it
	return conn
}

// as is the configuration of a gateway whose identity is in a folder.
func (h hostile) as(folder string) *tls.Config {
	h.Helper()
	store, err := identity.Open(folder)
	if err != nil {
		h.Fatal(err)
	}
	config := store.Client("c1", native.Protocol)
	config.VerifyConnection = nil // it does not care whom it calls
	return config
}

// openFrame is one of native that asks for a service with these attributes.
func openFrame(t *testing.T, stream uint32, source map[string]string) []byte {
	t.Helper()
	text, err := transport.EncodeRequest(transport.Request{Target: target("web"), Source: source})
	if err != nil {
		t.Fatal(err)
	}
	const kindOpen = 1
	b := binary.BigEndian.AppendUint32(nil, kindOpen<<24|uint32(2+len(text)))
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

// Whoever attacks a gateway is refused, counted, and told in the log, and who may call
// still can.
func TestHostileCallers(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, peer, late := f.Gateway("c1"), f.Gateway("c2"), f.Gateway("c3")
	f.RenewAt("c3", late, time.Now().Add(-2*identity.GatewayLasts))
	stranger := identitytest.NewFabric(t).Gateway("c2")
	peers, front := port(t), port(t)
	s := observe(t, gateway.Config{Identity: exporter, Listen: peers}, exports(echo(t)))
	run(t, gateway.Config{Identity: peer}, imports(front, peers), nil)
	h := hostile{t, peers}
	nobody := h.as(peer)
	nobody.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	old := h.as(peer)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]struct {
		attack func()
		metric string
		line   []string
	}{
		"no certificate":          {func() { h.dial(nobody) }, `handshake_failures_total{reason="tls"}`, []string{"peer refused", "certificate"}},
		"an older TLS":            {func() { h.dial(old) }, `handshake_failures_total{reason="tls"}`, []string{"peer refused", "unsupported versions"}},
		"another authority":       {func() { h.dial(h.as(stranger)) }, `handshake_failures_total{reason="untrusted"}`, []string{"peer refused", "not to be trusted"}},
		"an expired certificate":  {func() { h.dial(h.as(late)) }, `handshake_failures_total{reason="expired"}`, []string{"peer refused", "expired"}},
		"no TLS":                  {func() { h.say("GET / HTTP/1.1\r\n\r\n") }, `handshake_failures_total{reason="not-tls"}`, []string{"peer refused"}},
		"a hello byte by byte":    {func() { h.say("\x16\x03") }, `handshake_failures_total{reason="timeout"}`, []string{"peer refused", "deadline exceeded"}},
		"an open frame again":     {func() { h.tell(peer, openFrame(t, 1, nil), openFrame(t, 1, nil)) }, `protocol_breaches_total{peer="c2"}`, []string{"peer misbehaves", "stream 1 after stream 1"}},
		"a frame of 16 MB":        {func() { h.tell(peer, []byte{2, 0xff, 0xff, 0xff, 0, 0, 0, 1}) }, `protocol_breaches_total{peer="c2"}`, []string{"peer misbehaves", "16777215 bytes"}},
		"the cluster of another":  {func() { h.tell(peer, openFrame(t, 1, map[string]string{"cluster": "c9"})) }, `streams_refused_total{direction="export",peer="c2",reason="claims"}`, []string{"connection refused", "c9"}},
		"attributes of a service": {func() { h.tell(peer, openFrame(t, 1, map[string]string{"service": "web"})) }, `streams_refused_total{direction="export",peer="c2",reason="claims"}`, []string{"connection refused", "only what is called has"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.attack()
			if !conntest.Eventually(func() bool { return s.has(t, c.metric) && s.said.has(c.line...) }) {
				t.Errorf("no %s in\n%s\nor no line of %q in\n%s", c.metric, s.get(t, "/metrics"), c.line, s.said)
			}
		})
	}
	if got := call(t, front); got != "hello" {
		t.Errorf("who may call gets %q", got)
	}
	before := heap()
	for range *attacks {
		t.Run("again", func(t *testing.T) { // which closes its connections
			h := hostile{t, peers}
			for _, config := range []*tls.Config{nobody, old, h.as(stranger), h.as(late)} {
				h.dial(config)
			}
			h.say("GET / HTTP/1.1\r\n\r\n")
			h.tell(peer, openFrame(t, 1, nil), openFrame(t, 1, nil))
			h.tell(peer, openFrame(t, 1, map[string]string{"cluster": "c9"}))
		})
	}
	const most = 4 << 20
	if !conntest.Eventually(func() bool { return heap()-before < most }) {
		t.Errorf("%d times each attack take %d bytes", *attacks, heap()-before)
	}
	checkSecrets(t, map[string]string{"c1": exporter, "c2": peer}, s)
}

// A connection on which a peer breaks the protocol is closed, whatever it speaks.
func TestBreachEndsConnection(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, peer := f.Gateway("c1"), f.Gateway("c2")
	peers := port(t)
	observe(t, gateway.Config{Identity: exporter, Listen: peers}, exports(echo(t)))
	h := hostile{t, peers}
	for protocol, said := range map[string]string{
		native.Protocol:      "\xff\x00\x00\x00\x00\x00\x00\x01",
		native.ProtocolLane:  strings.Repeat("x", 16) + "\x07\x05",
		httpconnect.Protocol: "no request\r\n\r\n",
	} {
		config := h.as(peer)
		config.NextProtos = []string{protocol}
		conn := h.dial(config)
		_, _ = io.WriteString(conn, said)
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: it is open", protocol)
		}
	}
}

// say says something that is no TLS, and stays.
func (h hostile) say(text string) {
	h.Helper()
	_, _ = io.WriteString(conntest.Dial(h.T, h.gateway), text)
}

// tell says frames as a gateway that is known.
func (h hostile) tell(folder string, frames ...[]byte) {
	h.Helper()
	conn := h.dial(h.as(folder))
	for _, f := range frames {
		_, _ = conn.Write(f) // of one that was ended already
	}
}

var attacks = flag.Int("attacks", 20, "how often TestHostileCallers attacks again")

var halfOpen = flag.Int("half-open", 2000, "how many connections TestHalfOpen makes")

// Connections that say nothing are bounded, hold up nobody else and take no memory.
func TestHalfOpen(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, peer := f.Gateway("c1"), f.Gateway("c2")
	peers, front := port(t), port(t)
	s := observe(t, gateway.Config{Identity: exporter, Listen: peers}, exports(echo(t)))
	before := heap()
	many := *halfOpen
	open := make([]net.Conn, 0, many)
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	for range many {
		conn, err := elsewhere.Dial("tcp", peers)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	if !conntest.Eventually(func() bool { return s.has(t, `handshake_failures_total{reason="busy"}`) }) {
		t.Errorf("none is refused for there being too many:\n%s", s.get(t, "/metrics"))
	}
	run(t, gateway.Config{Identity: peer}, imports(front, peers), nil)
	conntest.Await(t, "an answer to who may call, while another opens connections", func() bool { return call(t, front) == "hello" })
	const most = 16 << 20
	if more := heap() - before; more > most {
		t.Errorf("%d connections that say nothing take %d bytes", many, more)
	}
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
