package capture_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"

	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/snapshot"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

var (
	four = netip.MustParseAddr("10.1.0.1")
	six  = netip.MustParseAddr("fd73::1")
)

// node has this namespace be one, with a way to Services.
func node(t *testing.T) {
	t.Helper()
	netnstest.Node(t, []string{four.String() + "/24", six.String() + "/64"}, []string{"10.96.0.0/16", "fd96::/64"})
}

func rules(t *testing.T) *capture.Rules {
	t.Helper()
	r, err := capture.New([]netip.Addr{four, six})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// teller answers whom it was called as: by connections of TCP what they were meant for,
// by datagrams where they arrived.
func teller(t *testing.T, port int) {
	t.Helper()
	for _, here := range []netip.Addr{four, six} {
		at := netip.AddrPortFrom(here, uint16(port))
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = u.Close() })
		go func() {
			for {
				c, err := l.AcceptTCP()
				if err != nil {
					return
				}
				raw, _ := c.SyscallConn()
				_ = raw.Control(func(fd uintptr) {
					to, err := dataplane.OriginalDestination(int(fd), at)
					_, _ = fmt.Fprintf(c, "%v%v", to, err)
				})
				_ = c.Close()
			}
		}()
		go func() {
			b := make([]byte, 100)
			for {
				_, from, err := u.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				_, _ = u.WriteToUDPAddrPort([]byte(at.String()), from)
			}
		}()
	}
}

// How long an answer may take, and how long is waited where there is to be none.
const (
	patience = 20 * time.Second
	silent   = 300 * time.Millisecond
)

// call is what the one at an address says; want is what it is to say.
func call(network, at, want string) string { return callFrom(nil, network, at, want) }

// callFrom calls from an address of this node.
func callFrom(local net.Addr, network, at, want string) string {
	most := patience
	if want == "nobody" {
		most = silent
	}
	d := net.Dialer{Timeout: most, LocalAddr: local}
	c, err := d.Dial(network, at)
	if err != nil {
		return "nobody"
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(most))
	_, _ = c.Write([]byte("?"))
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		return "nobody"
	}
	return string(b[:n])
}

func TestBrings(t *testing.T) {
	node(t)
	teller(t, 4480)
	teller(t, 4490)
	r := rules(t)
	service := func(p snapshot.Protocol, at string) capture.Service {
		return capture.Service{Protocol: p, At: netip.MustParseAddrPort(at)}
	}
	want := capture.Wanted{
		Services: map[capture.Service]uint16{
			service(snapshot.TCP, "10.96.0.5:80"):    4480,
			service(snapshot.TCP, "[fd96::5]:80"):    4480,
			service(snapshot.UDP, "10.96.0.5:53"):    4490,
			service(snapshot.UDP, "[fd96::5]:53"):    4490,
			service(snapshot.TCP, "10.96.0.6:65535"): 4490,
		},
		NodePorts: map[capture.NodePort]uint16{{Protocol: snapshot.TCP, Port: 30080}: 4480, {Protocol: snapshot.UDP, Port: 30053}: 4490, {Protocol: snapshot.TCP, Port: 30080, Is6: true}: 4480, {Protocol: snapshot.UDP, Port: 30053, Is6: true}: 4490},
	}
	if err := r.Apply(want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ network, at, want string }{
		{"tcp", "10.96.0.5:80", "10.96.0.5:80<nil>"},
		{"tcp", "[fd96::5]:80", "[fd96::5]:80<nil>"},
		{"tcp", "10.96.0.6:65535", "10.96.0.6:65535<nil>"},
		{"udp", "10.96.0.5:53", "10.1.0.1:4490"},
		{"udp", "[fd96::5]:53", "[fd73::1]:4490"},
		{"tcp", "10.1.0.1:30080", "10.1.0.1:30080<nil>"},
		{"tcp", "127.0.0.1:30080", "127.0.0.1:30080<nil>"},
		{"tcp", "[fd73::1]:30080", "[fd73::1]:30080<nil>"},
		{"udp", "10.1.0.1:30053", "10.1.0.1:4490"},
		{"tcp", "10.96.0.5:81", "nobody"},
		{"tcp", "10.96.0.7:80", "nobody"},
		{"udp", "10.96.0.5:80", "nobody"},
		{"tcp", "10.96.0.5:30080", "nobody"}, // not an address of this node
		{"tcp", "10.1.0.1:4480", "10.1.0.1:4480<nil>"},
		{"udp", "10.1.0.1:4480", "10.1.0.1:4480"},
		{"udp", "10.1.0.1:4490", "nobody"}, // a front, but nobody who was brought there
		{"udp", "[fd73::1]:4490", "nobody"},
	} {
		if got := call(c.network, c.at, c.want); got != c.want {
			t.Errorf("%s %s: %q, not %q", c.network, c.at, got, c.want)
		}
	}
	// What changes changes, and nothing else.
	delete(want.Services, service(snapshot.TCP, "10.96.0.5:80"))
	want.Services[service(snapshot.TCP, "10.96.0.9:80")] = 4480
	want.Services[service(snapshot.UDP, "10.96.0.5:53")] = 4480
	if err := r.Apply(want); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"10.96.0.5:80": "nobody", "10.96.0.9:80": "10.96.0.9:80<nil>", "10.96.0.6:65535": "10.96.0.6:65535<nil>"} {
		if got := call("tcp", at, want); got != want {
			t.Errorf("after the change %s: %q, not %q", at, got, want)
		}
	}
	if got := call("udp", "10.96.0.5:53", "10.1.0.1:4480"); got != "10.1.0.1:4480" {
		t.Errorf("a port that was moved: %q", got)
	}
}

// Who has called before there were rules, and calls again from the same port, is brought too,
// though the kernel knows the first call; so is who sent datagrams to a port that a proxy had
// which was here before. Calls to others stay what they are.
func TestBringsWhoCalledBefore(t *testing.T) {
	node(t)
	for _, port := range []int{4480, 4481, 4482} {
		teller(t, port)
	}
	r := rules(t)
	callAgain(t, map[string]string{
		"tcp 10.96.0.5:80": "nobody", "tcp [fd96::5]:80": "nobody", "tcp 10.96.0.6:80": "nobody", "udp 10.96.0.5:80": "nobody",
		"udp [fd96::5]:80": "nobody", "udp 10.96.0.6:80": "nobody", "udp 10.1.0.1:30053": "nobody", "udp [fd73::1]:30053": "nobody",
	})
	if err := r.Apply(brought(4481)); err != nil {
		t.Fatal(err)
	}
	callAgain(t, map[string]string{
		"tcp 10.96.0.5:80": "10.96.0.5:80<nil>", "tcp [fd96::5]:80": "[fd96::5]:80<nil>", "tcp 10.96.0.6:80": "nobody", "udp 10.96.0.5:80": "10.1.0.1:4481",
		"udp [fd96::5]:80": "[fd73::1]:4481", "udp 10.96.0.6:80": "nobody", "udp 10.1.0.1:30053": "10.1.0.1:4481", "udp [fd73::1]:30053": "[fd73::1]:4481",
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	next := rules(t)
	if err := next.Apply(brought(4482)); err != nil {
		t.Fatal(err)
	}
	callAgain(t, map[string]string{
		"udp 10.96.0.5:80": "10.1.0.1:4482", "udp [fd96::5]:80": "[fd73::1]:4482", "udp 10.1.0.1:30053": "10.1.0.1:4482", "udp [fd73::1]:30053": "[fd73::1]:4482",
	})
	if err := next.Apply(capture.Wanted{}); err != nil {
		t.Fatal(err)
	}
	callAgain(t, map[string]string{
		"udp 10.96.0.5:80": "nobody", "udp [fd96::5]:80": "nobody", "udp 10.1.0.1:30053": "nobody", "udp [fd73::1]:30053": "nobody",
	})
}

// What the proxy itself calls is not brought to it, though it is where clients call.
func TestNotFromTheProxy(t *testing.T) {
	node(t)
	teller(t, 4480)
	teller(t, 30080)
	r := rules(t)
	if err := r.Apply(capture.Wanted{NodePorts: map[capture.NodePort]uint16{{Protocol: snapshot.TCP, Port: 30080}: 4480, {Protocol: snapshot.UDP, Port: 30080}: 4480}}); err != nil {
		t.Fatal(err)
	}
	marked := net.Dialer{Timeout: patience, Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_MARK, capture.Mark)
		})
		return errors.Join(failed, err)
	}}
	for _, at := range []string{"10.1.0.1:30080", "[fd73::1]:30080"} {
		if got := call("tcp", at, at+"<nil>"); got != at+"<nil>" {
			t.Errorf("%s: %q", at, got)
		}
		c, err := marked.Dial("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:revive // a few
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = c.Write([]byte("?"))
		b := make([]byte, 100)
		if n, err := c.Read(b); string(b[:n]) != at {
			t.Errorf("the proxy's own call of %s comes to %q: %v", at, b[:n], err)
		}
	}
}

// brought is a Service of TCP, and one of UDP with its port at the node.
func brought(udp uint16) capture.Wanted {
	w := capture.Wanted{Services: map[capture.Service]uint16{}, NodePorts: map[capture.NodePort]uint16{
		{Protocol: snapshot.UDP, Port: 30053}: udp, {Protocol: snapshot.UDP, Port: 30053, Is6: true}: udp,
	}}
	for _, at := range []string{"10.96.0.5:80", "[fd96::5]:80"} {
		w.Services[capture.Service{Protocol: snapshot.TCP, At: netip.MustParseAddrPort(at)}] = 4480
		w.Services[capture.Service{Protocol: snapshot.UDP, At: netip.MustParseAddrPort(at)}] = udp
	}
	return w
}

// callAgain calls from the same port as before, by network and address, and wants what is said.
func callAgain(t *testing.T, calls map[string]string) {
	t.Helper()
	for call, want := range calls {
		network, at, _ := strings.Cut(call, " ")
		here := netip.AddrPortFrom(four, 5000)
		if strings.HasPrefix(at, "[") {
			here = netip.AddrPortFrom(six, 5000)
		}
		from := net.Addr(net.TCPAddrFromAddrPort(here))
		if network == "udp" {
			from = net.UDPAddrFromAddrPort(here)
		}
		if got := callFrom(from, network, at, want); got != want {
			t.Errorf("%s: %q, not %q", call, got, want)
		}
	}
}

func tables(t *testing.T) string {
	t.Helper()
	list, err := new(nftables.Conn).ListTables()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range list {
		names = append(names, table.Name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// Rules go with their process, however that ends; others' stay. Two proxies on a node are
// told apart.
func TestNothingIsLeft(t *testing.T) {
	node(t)
	if os.Getenv("SKERRY_TEST_HOLD") != "" {
		rules(t)
		fmt.Println("held")
		<-t.Context().Done() // it is killed
	}
	other := &nftables.Table{Name: "others", Family: nftables.TableFamilyIPv4}
	conn := &nftables.Conn{}
	conn.AddTable(other)
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.DelTable(other); _ = conn.Flush() })

	r := rules(t)
	if _, err := capture.New([]netip.Addr{four}); err == nil || !strings.Contains(err.Error(), "another proxy runs on this node") {
		t.Errorf("a second one: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := tables(t); got != "others" {
		t.Errorf("after the end there are tables %q", got)
	}

	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingIsLeft$") //nolint:gosec // itself
	holder.Env = append(os.Environ(), "SKERRY_TEST_HOLD=1")
	out, err := holder.StdoutPipe()
	if err == nil {
		netnstest.Unlink() // it makes its own
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("held"))); err != nil {
		t.Fatal(err)
	}
	if got := tables(t); !strings.Contains(got, capture.Table) {
		t.Errorf("while one runs there are tables %q", got)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	if got := tables(t); got != "others" {
		t.Errorf("after kill -9 there are tables %q", got)
	}
}

// Ten thousand Services are brought, and one more is a matter of itself.
func TestMany(t *testing.T) {
	node(t)
	teller(t, 4480)
	r := rules(t)
	want := capture.Wanted{Services: map[capture.Service]uint16{}}
	for i := range 10_000 {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80)
		want.Services[capture.Service{Protocol: snapshot.TCP, At: at}] = 4480
	}
	if err := r.Apply(want); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 4711, 9999} {
		at := "10.96." + strconv.Itoa(i>>8) + "." + strconv.Itoa(i&255) + ":80"
		if got := call("tcp", at, at+"<nil>"); got != at+"<nil>" {
			t.Errorf("%s: %q", at, got)
		}
	}
}
