package gateway_test

import (
	"cmp"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/flow/journal"
	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/loopback"
)

// seen is what an operator sees of a gateway.
type seen struct {
	said         *log
	admin, flows string
}

func (s seen) status(t *testing.T) *admin.Status {
	t.Helper()
	got, err := admin.Fetch(t.Context(), s.admin)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s seen) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := http.Get("http://" + s.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// has says whether metrics have lines that begin so.
func (s seen) has(t *testing.T, lines ...string) bool {
	t.Helper()
	text := s.get(t, "/metrics")
	for _, line := range lines {
		if !strings.Contains(text, "\n"+ledger.Prefix+line) {
			return false
		}
	}
	return true
}

// record is the last of a service. A connection that is reset at once may look to who
// dials as if nobody listened, and is tried again.
func (s seen) record(t *testing.T, service string) (last *flow.Record) {
	t.Helper()
	conntest.Await(t, "a record of "+service, func() bool {
		last = s.last(t, service)
		return last != nil
	})
	return last
}

// last is the last of a service so far, nil where there is none.
func (s seen) last(t *testing.T, service string) (last *flow.Record) {
	t.Helper()
	for r, err := range journal.Read(s.flows) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Service.Name == service {
			last = r
		}
	}
	return last
}

// observe runs a gateway that can be seen.
func observe(t *testing.T, config gateway.Config, s *snapshot.Snapshot) seen {
	t.Helper()
	config.Admin, config.Flows = port(t), filepath.Join(t.TempDir(), "flows")
	config.Connections = cmp.Or(config.Connections, gateway.Connections{Ahead: 1, Most: 16})
	said := run(t, config, s, nil)
	said.await(t, "serving")
	return seen{said, config.Admin, config.Flows}
}

// breaks is a service that resets what it hears.
func breaks(t *testing.T) string {
	t.Helper()
	return conntest.Listen(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1))
		transport.Reset(conn)
	})
}

// What gateways carry and refuse is seen by who runs them: in records of flows, in
// metrics and in the status, of both ends and whatever carries it; and no secret is.
func TestObserved(t *testing.T) {
	for _, by := range snapshot.Transports() {
		t.Run(by, func(t *testing.T) { observed(t, by) })
	}
}

func observed(t *testing.T, by string) {
	f := identitytest.NewFabric(t)
	folders := map[string]string{"c1": f.Gateway("c1"), "c2": f.Gateway("c2")}
	peers := port(t)
	not := func(service string) []policy.Policy {
		return allow(is(policy.Cluster, "c2"), policy.Requirement{Key: policy.Service, Operator: policy.NotIn, Values: []string{service}})
	}
	exporter := observe(t, gateway.Config{Identity: folders["c1"], Listen: peers}, &snapshot.Snapshot{
		Exports:  []snapshot.Export{{Target: target("web"), Backends: []string{echo(t)}}, {Target: target("broken"), Backends: []string{breaks(t)}}},
		Policies: not("secret"),
	})
	fronts := map[string]string{}
	s := &snapshot.Snapshot{Peers: []snapshot.Peer{{Name: "c1", Gateways: []string{peers}, Transport: by}}, Policies: not("forbidden")}
	for _, name := range []string{"web", "broken", "secret", "forbidden"} {
		fronts[name] = port(t)
		s.Imports = append(s.Imports, snapshot.Import{Target: target(name), Listen: []netip.AddrPort{netip.MustParseAddrPort(fronts[name])}, From: []string{"c1"}})
	}
	importer := observe(t, gateway.Config{Identity: folders["c2"]}, s)

	open := open(t, fronts["web"])
	conntest.Await(t, "a connection while a stream is open", func() bool { // ahead of need, where the stream shares one
		return by != snapshot.Native || importer.status(t).Peers[0].Gateways[0].Connections > 0
	})
	for who, d := range map[seen]string{importer: "import", exporter: "export"} {
		labels := `{direction="` + d + `",peer="` + map[string]string{"import": "c1", "export": "c2"}[d] + `"}`
		if !conntest.Eventually(func() bool { // what was heard is counted after that
			return who.has(t, "streams"+labels+" 1\n", "streams_opened_total"+labels+" 1\n", "transmit_bytes_total"+labels+" 5\n", "receive_bytes_total"+labels+" 5\n")
		}) {
			t.Errorf("%s: an open stream is not in\n%s", d, who.get(t, "/metrics"))
		}
	}
	open.Close()
	for _, name := range []string{"broken", "secret", "forbidden"} {
		if got := call(t, fronts[name]); got == "hello" {
			t.Errorf("%s answers", name)
		}
	}
	checkRecords(t, importer, exporter)
	if !importer.has(t, `streams_broken_total{direction="import",peer="c1"} `, `streams_refused_total{direction="import",peer="c1",reason="policy"} `,
		`streams_refused_total{direction="import",peer="c1",reason="peer-policy"} `, `policy_decisions_total{direction="import",verdict="denied"} `) {
		t.Errorf("what was refused is not in\n%s", importer.get(t, "/metrics"))
	}
	conntest.Await(t, "a gateway that is ready", func() bool { return importer.status(t).Phase == admin.Ready })
	checkStatus(t, importer.status(t), exporter.status(t), by)
	checkSecrets(t, folders, importer, exporter)
}

// checkRecords holds the records of both ends to what was done.
func checkRecords(t *testing.T, importer, exporter seen) {
	t.Helper()
	for _, c := range []struct {
		who      seen
		service  string
		verdict  flow.Verdict
		by, why  string
		to, back int64
	}{
		{importer, "web", flow.Allowed, "p", "", 5, 5},
		{exporter, "web", flow.Allowed, "p", "", 5, 5},
		{importer, "broken", flow.Broken, "p", "reset", 5, 0},
		{importer, "secret", flow.Refused, "p", "denied by policy", 0, 0},
		{exporter, "secret", flow.Denied, "", "no policy selects it", 0, 0},
		{importer, "forbidden", flow.Denied, "", "no policy selects it", 0, 0},
	} {
		r := c.who.record(t, c.service)
		if r.Verdict != c.verdict || r.Policy != c.by || !strings.Contains(r.Why, c.why) || r.ToClientBytes != c.back || c.verdict == flow.Allowed && r.ToServiceBytes != c.to {
			t.Errorf("%s: got %+v", c.service, r)
		}
		if r.From[policy.Cluster] != "c2" || r.From[policy.Gateway] != "g1" || r.Cluster != "c1" || r.TotalNs <= 0 || r.Begin.IsZero() {
			t.Errorf("%s: got %+v", c.service, r)
		}
		if back := r.FirstByteNs > 0; back != (c.back > 0) || back && (r.OpenNs == 0 || r.FirstByteNs < r.OpenNs || r.TotalNs < r.FirstByteNs) {
			t.Errorf("%s: timings %+v", c.service, r.Timings)
		}
		if imported := r.Direction == flow.Import; imported != (r.Client != "") || imported && r.Peer != "c1" || !imported && (r.Peer != "c2" || r.Gateway != "g1") {
			t.Errorf("%s: got %+v", c.service, r)
		}
	}
	if r := exporter.record(t, "broken"); r.Verdict != flow.Broken {
		t.Errorf("the exporter says %+v", r)
	}
}

// checkStatus holds the status of both ends to what runs.
func checkStatus(t *testing.T, importer, exporter *admin.Status, by string) {
	t.Helper()
	if importer.Gateway != "c2/g1" || importer.Phase != admin.Ready || len(importer.Imports) != 4 || !importer.Imports[0].Listen[0].Listening || importer.Flows.Dropped != 0 {
		t.Errorf("got %+v", importer)
	}
	if len(importer.Certificates) != 2 || importer.Certificates[0].Overdue || !importer.Certificates[0].End.After(time.Now()) {
		t.Errorf("got %+v", importer.Certificates)
	}
	if l := importer.Peers[0].Gateways[0]; l.State != transport.Up || l.Transport != by || l.SentBytesPerSecond <= 0 || l.ReceivedBytesPerSecond <= 0 || by == snapshot.Native && l.RTTNs <= 0 {
		t.Errorf("got %+v", l)
	}
	if len(exporter.Exports) != 2 || len(exporter.Callers) != 1 && by == snapshot.Native {
		t.Fatalf("got %+v", exporter)
	}
	for _, c := range exporter.Callers {
		if c.Gateway != "c2/g1" || c.Transport != by || c.State != transport.Up || c.RTTNs <= 0 || c.SentBytesPerSecond <= 0 {
			t.Errorf("got %+v", c)
		}
	}
}

// checkSecrets looks for keys and tokens in all that is told.
func checkSecrets(t *testing.T, folders map[string]string, all ...seen) {
	t.Helper()
	token := regexp.MustCompile(`[A-Z2-7]{26}|Bearer`)
	for _, s := range all {
		flows, err := os.ReadFile(s.flows)
		if err != nil {
			t.Fatal(err)
		}
		told := s.said.String() + string(flows) + s.get(t, "/metrics") + s.get(t, "/v1/status") + s.get(t, "/debug/pprof/goroutine?debug=2")
		if found := token.FindString(told); found != "" {
			t.Errorf("%q is told", found)
		}
		for _, folder := range folders {
			text, err := os.ReadFile(filepath.Join(folder, "tls.key"))
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(text)
			if block == nil {
				t.Fatal("no key")
			}
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(line, "-----") && strings.Contains(told, strings.TrimSpace(line)) {
					t.Error("a key is told")
				}
			}
		}
	}
}

// A peer that is not there is told since when and why, and one that comes back as well;
// what is wrong with a handshake is counted.
func TestUnreachable(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	stranger := identitytest.New(t, "c2")["c2"] // of another fabric
	peers, front := port(t), port(t)
	importer := observe(t, gateway.Config{Identity: folders["c2"]}, imports(front, peers))
	lost := observe(t, gateway.Config{Identity: stranger}, imports(port(t), peers))
	down := func(who seen) bool {
		l := who.status(t).Peers[0].Gateways[0]
		return l.State == transport.Down && l.Why != "" && l.DialsFailed > 0 && len(who.status(t).Peers[0].Unreachable()) > 0
	}
	if !conntest.Eventually(func() bool { return down(importer) }) {
		t.Errorf("got %+v", importer.status(t).Peers)
	}
	if call(t, front) == "hello" || !conntest.Eventually(func() bool {
		return importer.has(t, `streams_refused_total{direction="import",peer="c1",reason="no-way"} `, `link_up{gateway="`+peers)
	}) {
		t.Errorf("no way is not in\n%s", importer.get(t, "/metrics"))
	}
	exporter := observe(t, gateway.Config{Identity: folders["c1"], Listen: peers}, exports(echo(t)))
	if !conntest.Eventually(func() bool { return importer.status(t).Peers[0].Gateways[0].State == transport.Up }) {
		t.Errorf("got %+v", importer.status(t).Peers)
	}
	if !down(lost) {
		t.Errorf("got %+v", lost.status(t).Peers)
	}
	_, _ = conntest.Dial(t, peers).Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	if !conntest.Eventually(func() bool {
		return exporter.has(t, `handshake_failures_total{reason="not-tls"} 1`) && exporter.has(t, `handshake_failures_total{reason="tls"}`)
	}) {
		t.Errorf("refused handshakes are not in\n%s", exporter.get(t, "/metrics"))
	}
}

// A gateway is not healthy when it drains; files that cannot be read are counted; an
// address that others could reach is refused.
func TestAdmin(t *testing.T) {
	folder := identitytest.New(t, "c1")["c1"]
	config := gateway.Config{Identity: folder, Listen: port(t), Admin: "0.0.0.0:1"}
	g, err := gateway.New(config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context(), &snapshot.Snapshot{}, nil); err == nil || !strings.Contains(err.Error(), loopback.ErrAnywhere.Error()) {
		t.Errorf("got %v", err)
	}
	s := observe(t, gateway.Config{Identity: folder, Listen: port(t)}, &snapshot.Snapshot{})
	if !conntest.Eventually(func() bool { return s.get(t, "/readyz") == "ready\n" && s.get(t, "/healthz") == "ready\n" }) {
		t.Errorf("got %q", s.get(t, "/readyz"))
	}
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !conntest.Eventually(func() bool { return s.has(t, `reload_failures_total{what="identity"} 1`) }) {
		t.Errorf("a reload that fails is not in\n%s", s.get(t, "/metrics"))
	}
}

// A certificate that should have been renewed is told in the log, once, in metrics and in
// the status, until it is.
func TestOverdue(t *testing.T) {
	f := identitytest.NewFabric(t)
	folder := f.Gateway("c1")
	f.RenewAt("c1", folder, time.Now().Add(-identity.GatewayLasts*3/4))
	s := observe(t, gateway.Config{Identity: folder, Listen: port(t)}, &snapshot.Snapshot{})
	s.said.await(t, "a certificate was not renewed", "of=leaf")
	if !s.has(t, `certificate_renewal_overdue{certificate="leaf"} 1`, `certificate_renewal_overdue{certificate="authority"} 0`) || !s.status(t).Certificates[0].Overdue {
		t.Errorf("it is not in\n%s", s.get(t, "/metrics"))
	}
	f.Renew("c1", folder)
	conntest.Await(t, "silence about one that was renewed", func() bool { return s.has(t, `certificate_renewal_overdue{certificate="leaf"} 0`) })
	if n := strings.Count(s.said.String(), "a certificate was not renewed"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// While it drains, a gateway says so to who asks for its health, and what it carries is
// recorded when it ends.
func TestObservedDrain(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front := port(t), port(t)
	exporter := gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}, Drain: 20 * time.Second, Admin: port(t), Flows: filepath.Join(t.TempDir(), "flows")}
	said, end := start(t, exporter, exports(echo(t)), nil)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, peers), nil)
	conn := open(t, front)
	s := seen{said, exporter.Admin, exporter.Flows}
	ended := ending(end)
	conntest.Await(t, "a gateway that says that it drains", func() bool { return s.get(t, "/healthz") == "draining\n" })
	conn.Close()
	<-ended
	if r := s.record(t, "web"); r.Verdict != flow.Allowed || r.ToServiceBytes != 5 {
		t.Errorf("got %+v", r)
	}
}

// The status says at which addresses clients are heard. One that somebody else has is told, and
// listened at once that has left.
func TestListens(t *testing.T) {
	tcp, udp := port(t), udpPort(t, "127.0.0.1")
	s := udpImports(udp)
	s.Imports = append(s.Imports, snapshot.Import{Target: target("web"), Listen: []netip.AddrPort{netip.MustParseAddrPort(tcp)}, From: []string{"c1"}})
	next, config := make(chan *snapshot.Snapshot), gateway.Config{Identity: identitytest.New(t, "c2")["c2"], Admin: port(t)}
	importer := seen{said: run(t, config, &snapshot.Snapshot{}, next), admin: config.Admin}
	importer.said.await(t, "serving")
	listens := func() (n int) {
		for _, i := range importer.status(t).Imports {
			if i.Listen[0].Listening {
				n++
			}
		}
		return n
	}
	endTCP, endUDP := taken(t, "tcp", tcp), taken(t, "udp", udp)
	next <- s
	importer.said.await(t, "not all is served", tcp, udp)
	if n := listens(); n != 0 {
		t.Errorf("%d of two addresses that others have are listened at", n)
	}
	endUDP()
	conntest.Await(t, "the address of UDP", func() bool { return listens() == 1 })
	endTCP()
	conntest.Await(t, "the address of TCP", func() bool { return listens() == 2 })
	importer.said.await(t, "all is served")
}

// taken has an address, until it is ended.
func taken(t *testing.T, protocol, address string) (end func()) {
	t.Helper()
	var has io.Closer
	var err error
	if protocol == "udp" {
		has, err = net.ListenPacket(protocol, address)
	} else {
		has, err = net.Listen(protocol, address)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { has.Close() })
	return func() { has.Close() }
}
