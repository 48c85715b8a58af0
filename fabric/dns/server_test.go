package dns_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	miekg "github.com/miekg/dns"

	"skerry.dev/skerry/fabric/dns"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

const name = "web.shop.svc.clusterset.local."

func zone(listen ...string) *dns.Zone {
	i := snapshot.Import{Target: transport.Target{Namespace: "shop", Name: "web", Port: 80, Protocol: transport.TCP}, PortName: "http"}
	for _, at := range listen {
		i.Listen = append(i.Listen, netip.MustParseAddrPort(at))
	}
	return dns.NewZone([]snapshot.Import{i})
}

// serve runs a server until the test ends.
func serve(t *testing.T, address string) *dns.Server {
	t.Helper()
	s, err := dns.Listen(address)
	for range 20 { // the port may be taken in TCP
		if err == nil {
			break
		}
		s, err = dns.Listen(address)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		s.Serve(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

// Go's own resolver and another client find a service, over UDP, over TCP, and by TCP
// where UDP has no room; another snapshot is heard of at once.
func TestServer(t *testing.T) {
	many := []string{"[fd00::1]:80"}
	for i := range 100 {
		many = append(many, fmt.Sprintf("10.2.1.%d:80", i))
	}
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		s := serve(t, at)
		_, port, err := net.SplitHostPort(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		address := s.Addr()
		if at == ":0" {
			address = "127.0.0.2:" + port // which it must answer from
		}
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
		for _, listen := range [][]string{{"10.2.0.1:80"}, many} {
			s.Set(zone(listen...))
			found, err := resolver.LookupNetIP(t.Context(), "ip", name)
			if err != nil || len(found) != len(listen) || !slices.Contains(found, netip.MustParseAddrPort(listen[0]).Addr()) {
				t.Errorf("at %s: found %v, %v", at, found, err)
			}
			_, srv, err := resolver.LookupSRV(t.Context(), "http", "tcp", name)
			if err != nil || len(srv) != 1 || srv[0].Port != 80 || srv[0].Target != name {
				t.Errorf("at %s: found %v, %v", at, srv, err)
			}
		}
		for _, network := range []string{"udp", "tcp"} {
			client := &miekg.Client{Net: network, Timeout: 20 * time.Second}
			m, _, err := client.Exchange(new(miekg.Msg).SetQuestion(name, miekg.TypeA), address)
			if err != nil || m.Truncated != (network == "udp") {
				t.Errorf("by %s at %s: %v, %v", network, at, m, err)
			}
		}
	}
}

// A query that is too long ends its connection, and what is no query gets no answer; the
// next one does.
func TestHuge(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	s.Set(zone("10.2.0.1:80"))
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write(append([]byte{0xff, 0xff}, make([]byte, 1000)...))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes of an answer", n)
	}
	udp, err := miekg.DialTimeout("udp", s.Addr(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	_ = udp.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = udp.Write([]byte("x"))
	_, _ = udp.Write(make([]byte, 60_000)) // zeros: no question
	if m, err := udp.ReadMsg(); err != nil || m.Rcode != miekg.RcodeFormatError {
		t.Errorf("to zeros: %v, %v", m, err)
	}
	query := new(miekg.Msg).SetQuestion(name, miekg.TypeA)
	if err := udp.WriteMsg(query); err != nil {
		t.Fatal(err)
	}
	if m, err := udp.ReadMsg(); err != nil || m.Id != query.Id || len(m.Answer) != 1 {
		t.Errorf("got %v, %v", m, err)
	}
}
