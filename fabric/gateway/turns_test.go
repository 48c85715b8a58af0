package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

// Backends take turns; one that could not be reached is passed over for a while, unless
// no other can be.
func TestTurns(t *testing.T) {
	now, refused := time.Unix(1000, 0), errors.New("refused")
	one := newTurns([]snapshot.Export{{Backends: []string{"a", "b", "c"}}})[transport.Target{}]
	after := func(d time.Duration) time.Time { return now.Add(d) }
	for i, c := range []struct {
		want string
		// then is what is found out when it has been tried.
		then func()
	}{
		{"[0 1 2]", nil},
		{"[1 2 0]", nil},
		{"[2 0 1]", nil},
		{"[0 1 2]", func() { one.tried(1, refused, now) }},
		{"[2 0 1]", nil},
		{"[0 2 1]", func() { one.tried(0, refused, now) }},
		{"[2 1 0]", func() { one.tried(2, refused, now) }},
		{"[0 1 2]", func() { one.tried(1, nil, now) }},
		{"[1 2 0]", func() { now = after(restFor) }},
		{"[2 0 1]", nil},
	} {
		if got := fmt.Sprint(one.take(now)); got != c.want {
			t.Errorf("%d: got %s, want %s", i, got, c.want)
		}
		if c.then != nil {
			c.then()
		}
	}
	if got := newTurns([]snapshot.Export{{}})[transport.Target{}].take(now); got != nil {
		t.Errorf("of no backends: %v", got)
	}
}

// Where nothing is known of the client, the header says that it says nothing (PROXY
// protocol, section 2.2: LOCAL and UNSPEC).
func TestProxyOfNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &snapshot.Export{Backends: []string{l.Addr().String()}, ProxyProtocol: true}
	conn, err := dialOne(t.Context(), e, 0, 1, transport.Client{})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	service, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	const want = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	if got, err := io.ReadAll(service); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// A peer says what it knows of its clients, and nothing that its certificate says, or
// that only a service has.
func TestVouched(t *testing.T) {
	peer := identity.Name{Cluster: "c2", Gateway: "g1"}
	for _, c := range []struct {
		key, value string
		taken      bool
	}{
		{policy.Workload, "cart", true},
		{policy.Namespace, "shop", true},
		{policy.Label + "service", "web", true},
		{policy.Cluster, "c2", true},
		{policy.Cluster, "c1", false},
		{policy.Cluster, "", false},
		{policy.Gateway, "g1", true},
		{policy.Gateway, "g2", false},
		{policy.Service, "web", false},
		{policy.Port, "80", false},
		{policy.Protocol, "tcp", false},
	} {
		from, err := vouched(peer, map[string]string{c.key: c.value})
		if (err == nil) != c.taken {
			t.Errorf("%s=%s: %v", c.key, c.value, err)
		}
		if c.taken && (from[c.key] != c.value || from[policy.Cluster] != "c2" || from[policy.Gateway] != "g1") {
			t.Errorf("%s=%s: got %v", c.key, c.value, from)
		}
	}
}
