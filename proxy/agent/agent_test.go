package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/proxy/agent"
	"skerry.dev/skerry/proxy/snapshot"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

const patience = 20 * time.Second

// Two pods are two addresses of the node, which say where they are.
func pods(t *testing.T) {
	t.Helper()
	for _, ip := range []string{"10.1.0.11", "10.1.0.12"} {
		l, err := net.Listen("tcp", ip+":8080")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		u, err := net.ListenPacket("udp", ip+":8053")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = u.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { // whoever asks first is answered first, whoever called first
					_, _ = io.ReadAtLeast(c, make([]byte, 1), 1)
					_, _ = fmt.Fprint(c, ip)
					_ = c.Close()
				}()
			}
		}()
		go func() {
			b := make([]byte, 100)
			for {
				_, from, err := u.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = u.WriteTo([]byte(ip), from)
			}
		}()
	}
}

// cluster tells what the test has it tell.
type cluster struct {
	changes chan snapshot.Change
	refused chan string
	usage   func() (map[string]snapshot.Usage, error)
}

func (c cluster) Usage(context.Context, snapshot.Key) (map[string]snapshot.Usage, error) {
	return c.usage()
}

func (c cluster) Watch(ctx context.Context, tell func(snapshot.Change)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-c.changes:
			tell(change)
		}
	}
}

func (c cluster) Refused(_ snapshot.Key, why string) { c.refused <- why }

// web is a Service of TCP and UDP with pods at these addresses.
func web(pods ...string) snapshot.Change {
	s := &snapshot.Service{
		Key: snapshot.Key{Namespace: "default", Name: "web"}, Policy: "round-robin", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.5")},
		Ports: []snapshot.Port{
			{Name: "http", Protocol: snapshot.TCP, Port: 80, NodePort: 30080},
			{Name: "dns", Protocol: snapshot.UDP, Port: 53, NodePort: 30053},
		},
		Refusals: []string{"port 9: SCTP is not carried"}, HealthPort: 31000,
	}
	for i, port := range []uint16{8080, 8053} {
		for _, ip := range pods {
			s.Ports[i].Endpoints = append(s.Ports[i].Endpoints, snapshot.Endpoint{
				Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), port), Node: "n1", Ready: true, Serving: true,
			})
		}
	}
	return snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{s.Key: s}}
}

// proxy is one of the node n1, which runs until stop.
func proxy(t *testing.T, c cluster) (stop func()) {
	t.Helper()
	end, wait := begin(t, c)
	return func() {
		t.Helper()
		end()
		wait()
	}
}

// begin has a proxy run until end; wait waits for that.
func begin(t *testing.T, c cluster) (end, wait func()) { return beginWith(t, c, patience) }

// beginWith has what is open then go on for so long.
func beginWith(t *testing.T, c cluster, drain time.Duration) (end, wait func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	config := agent.Config{
		Node: "n1", Here: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, Port: 4480, CopyPort: 4483, ReportPort: 4481, RefusePort: 4484,
		Groups: "/sys/fs/cgroup", Admin: "127.0.0.1:4482", Drain: drain,
	}
	go func() { done <- agent.Run(ctx, config, c, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	return cancel, func() {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * patience):
			t.Fatal("it does not end")
		}
	}
}

// A Service that opts in is balanced at its address and at the node's port, over TCP and
// UDP, as its endpoints come and go; when the proxy ends nobody answers there.
func TestService(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	c.changes <- web("10.1.0.11", "10.1.0.12")
	stop := proxy(t, c)
	calls := map[string][]string{"tcp": {"10.96.0.5:80", "10.1.0.1:30080"}, "udp": {"10.96.0.5:53", "10.1.0.1:30053"}}
	for network, at := range calls {
		for _, a := range at {
			both(t, network, a)
		}
	}
	if why := <-c.refused; why != "port 9: SCTP is not carried" {
		t.Errorf("refused is %q", why)
	}
	observe(t)
	healthy(t, http.StatusOK, `"localEndpoints":2`)
	c.changes <- web()
	for network, at := range calls {
		for _, a := range at {
			await(t, network+" "+a+" is refused", func() bool {
				_, err := askWithin(network, a, soon)
				return errors.Is(err, syscall.ECONNREFUSED)
			})
		}
	}
	healthy(t, http.StatusServiceUnavailable, `"localEndpoints":0`)
	c.changes <- web("10.1.0.12")
	await(t, "only the second pod answers", func() bool {
		for range 4 {
			if ask("tcp", "10.96.0.5:80") != "10.1.0.12" || ask("udp", "10.96.0.5:53") != "10.1.0.12" {
				return false
			}
		}
		return true
	})
	stop()
	if got := ask("tcp", "10.96.0.5:80"); got != "" {
		t.Errorf("after the end %q answers", got)
	}
	if _, err := http.Get("http://10.1.0.1:31000/healthz"); err == nil {
		t.Error("after the end the health check port answers")
	}
}

// While endpoints change a hundred times a second each connection is served by one that is
// there: never refused, nor by one that has long gone.
func TestChurn(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 1000)}
	c.changes <- web("10.1.0.11")
	stop := proxy(t, c)
	await(t, "it serves", func() bool { return ask("tcp", "10.96.0.5:80") == "10.1.0.11" })
	const changes, every = 200, 10 * time.Millisecond
	churned := make(chan struct{})
	go func() {
		defer close(churned)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := range changes {
			<-tick.C
			c.changes <- [...]snapshot.Change{web("10.1.0.12"), web("10.1.0.11", "10.1.0.12"), web("10.1.0.11")}[i%3]
		}
	}()
	asked, by := 0, map[string]int{}
	for churning := true; churning; asked++ {
		who, err := askWithin("tcp", "10.96.0.5:80", patience) // a SYN that meets the same port's last connection is sent again after 1 s
		if by[who]++; who == "" {
			t.Errorf("connection %d: %v", asked, err)
		}
		select {
		case <-churned:
			churning = false
		default:
		}
	}
	if by["10.1.0.11"]+by["10.1.0.12"] != asked || by["10.1.0.11"] == 0 || by["10.1.0.12"] == 0 {
		t.Errorf("of %d connections the pods have served %v", asked, by)
	}
	stop()
}

// Who may not call at a load balancer's address is not served there, until the Service says
// so.
func TestSourceRanges(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	admit := func(ranges string) {
		change := web("10.1.0.11")
		for _, s := range change.Services {
			s.LoadBalancerIPs, s.SourceRanges = []netip.Addr{netip.MustParseAddr("10.96.0.6")}, []netip.Prefix{netip.MustParsePrefix(ranges)}
		}
		c.changes <- change
	}
	admit("198.51.100.0/24")
	defer proxy(t, c)()
	ports := map[string]string{"tcp": ":80", "udp": ":53"}
	for network, port := range ports {
		await(t, network+" is carried", func() bool { return ask(network, "10.96.0.5"+port) == "10.1.0.11" })
		if by := ask(network, "10.96.0.6"+port); by != "" {
			t.Errorf("%s at the load balancer's address: %s answers", network, by)
		}
	}
	admit("10.1.0.0/24")
	for network, port := range ports {
		await(t, network+" is admitted", func() bool { return ask(network, "10.96.0.6"+port) == "10.1.0.11" })
	}
}

// Where a node has no port left to call an endpoint by, another one is called; where it has
// none for any, the client is reset. No endpoint is left out for it.
func TestNoPorts(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	change := web("10.1.0.11", "10.1.0.12")
	for _, s := range change.Services {
		s.Policy = "cost"
	}
	c.changes <- change
	defer proxy(t, c)()
	await(t, "it serves", func() bool { return ask("tcp", "10.96.0.5:80") != "" })
	twoPorts(t)
	var held []net.Conn
	by := map[string]int{}
	for port := range 20 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 1, 0, 1), Port: 20_000 + port}, Timeout: patience}
		conn, err := d.Dial("tcp", "10.96.0.5:80")
		if err != nil {
			by["nobody"]++ // reset as soon as it had called
			continue
		}
		defer conn.Close() //nolint:revive // all are held until the end
		held = append(held, conn)
	}
	for _, conn := range held {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = conn.Write([]byte("?"))
		who, _ := io.ReadAll(conn)
		by[cmp.Or(string(who), "nobody")]++
	}
	if by["10.1.0.11"] != 2 || by["10.1.0.12"] != 2 || by["nobody"] != 16 {
		t.Errorf("served have %v", by)
	}
	for line := range strings.Lines(get(t, "/metrics")) {
		if strings.HasPrefix(line, "skerry_proxy_endpoint_ejections_total{") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("an endpoint was left out for it: %s", line)
		}
	}
}

// twoPorts has this namespace call by two ports alone, until the test ends.
func twoPorts(t *testing.T) {
	t.Helper()
	const ports = "/proc/sys/net/ipv4/ip_local_port_range"
	was, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(ports, was, 0) })
	if err := os.WriteFile(ports, []byte("50000 50001"), 0); err != nil {
		t.Fatal(err)
	}
}

// A Service may be carried by the copy loop, and by the proxy's own plane again.
func TestCopyLoop(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	looped, plain := web("10.1.0.11", "10.1.0.12"), web("10.1.0.11", "10.1.0.12")
	for _, s := range looped.Services {
		s.Options.Dataplane = snapshot.DataplaneCopyLoop
	}
	c.changes <- looped
	stop := proxy(t, c)
	both(t, "tcp", "10.96.0.5:80")
	both(t, "tcp", "10.1.0.1:30080")
	const accepted = "skerry_proxy_connections_accepted_total "
	if own := get(t, "/metrics"); !strings.Contains(own, accepted+"0\n") {
		t.Error("the proxy's own plane has carried")
	}
	c.changes <- plain
	await(t, "the proxy's own plane carries", func() bool {
		return ask("tcp", "10.96.0.5:80") != "" && !strings.Contains(get(t, "/metrics"), accepted+"0\n")
	})
	stop()
}

// A Service that wants it from metrics.k8s.io is balanced by what that says, once clients
// call; while it says nothing, by what it said.
func TestMetrics(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	var away atomic.Bool
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10), usage: func() (map[string]snapshot.Usage, error) {
		if away.Load() {
			return nil, errAway
		}
		return map[string]snapshot.Usage{"n1": {CPU: 0.6, RAM: 0.1}, "n2": {CPU: 0.1, RAM: 0.1}}, nil
	}}
	away.Store(true)
	change := web("10.1.0.11", "10.1.0.12")
	for _, s := range change.Services {
		s.Policy, s.Options = "rap", snapshot.Options{MaxCPU: 50, Usage: snapshot.UsageMetrics}
		s.Ports[0].Endpoints[1].Node = "n2"
	}
	c.changes <- change
	stop := proxy(t, c)
	await(t, "it serves at home while nothing is known", func() bool { return ask("tcp", "10.96.0.5:80") == "10.1.0.11" })
	await(t, "a question without an answer is counted", func() bool {
		return strings.Contains(get(t, "/metrics"), "skerry_proxy_metrics_failed_total 1\n")
	})
	if by, err := askWithin("tcp", "10.96.0.5:80", patience); by != "10.1.0.11" {
		t.Errorf("without an answer %q serves: %v", by, err)
	}
	away.Store(false)
	await(t, "it serves where less is used", func() bool { return ask("tcp", "10.96.0.5:80") == "10.1.0.12" })
	stop()
}

var errAway = errors.New("the server is currently unable to handle the request")

// get is what the proxy answers an operator.
func get(t *testing.T, path string) string {
	t.Helper()
	answer, err := http.Get("http://127.0.0.1:4482" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// observe asks the proxy as an operator does.
func observe(t *testing.T) {
	t.Helper()
	for path, parts := range map[string][]string{
		"/metrics": {
			`skerry_proxy_endpoint_chosen_total{endpoint="10.1.0.11:8080",node="n1",port="80",protocol="TCP",service="default/web",traffic_policy="Cluster"} `,
			"skerry_proxy_connections_accepted_total ", "skerry_proxy_reports_forged_total 0",
		},
		"/readyz":                          {"ready"},
		"/v1/about":                        {`"node":"n1"`, `"kernel":"`},
		"/v1/explain":                      {`"policy":"round-robin"`, `"id":"10.1.0.12:8053"`},
		"/v1/explain?service=default/web":  {`"service":"default/web"`},
		"/v1/explain?service=default/none": {"404"},
	} {
		body := get(t, path)
		for _, part := range parts {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s in\n%s", path, part, body)
			}
		}
	}
}

// healthy waits until a load balancer is told this of the node, which is soon after clients are.
func healthy(t *testing.T, status int, part string) {
	t.Helper()
	await(t, fmt.Sprintf("the health check port answers %d, %s", status, part), func() bool {
		answer, err := http.Get("http://10.1.0.1:31000/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode == status && strings.Contains(string(body), part) && strings.Contains(string(body), `"name":"web"`)
	})
}

// both waits until either pod has answered at an address.
func both(t *testing.T, network, at string) {
	t.Helper()
	seen := map[string]bool{}
	await(t, network+" "+at, func() bool {
		seen[ask(network, at)] = true
		return seen["10.1.0.11"] && seen["10.1.0.12"]
	})
}

// soon is how long who answers may take for it.
const soon = 300 * time.Millisecond

// ask is who answers at an address soon; "" is nobody.
func ask(network, at string) string {
	who, _ := askWithin(network, at, soon)
	return who
}

// askWithin is who answers at an address, a time after being called and one after being
// asked at the latest.
func askWithin(network, at string, most time.Duration) (string, error) {
	c, err := net.DialTimeout(network, at, most)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(most))
	_, _ = c.Write([]byte("?"))
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
