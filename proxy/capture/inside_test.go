package capture_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/snapshot"
)

// What is for inside is for this node and its pods: who calls from elsewhere hears nothing, not even
// that he is refused, by TCP and UDP, of either family, at the Service's address and at the node's.
func TestInside(t *testing.T) {
	node(t)
	teller(t, 4480)
	r := rules(t)
	want := brought(4480)
	for _, six := range []bool{false, true} {
		want.NodePorts[capture.NodePort{Protocol: snapshot.TCP, Port: 30080, Is6: six}] = 4480
	}
	want.Inside = capture.Inside{Services: map[capture.Service]bool{}, NodePorts: map[capture.NodePort]bool{}}
	for s := range want.Services {
		want.Inside.Services[s] = true
	}
	for n := range want.NodePorts {
		want.Inside.NodePorts[n] = true
	}
	calls := func(from string, heard bool, pods ...netip.Prefix) {
		want.Inside.Pods = pods
		if err := r.Apply(want); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ network, at, says string }{
			{"tcp", "10.96.0.5:80", "10.96.0.5:80<nil>"},
			{"tcp", "[fd96::5]:80", "[fd96::5]:80<nil>"},
			{"udp", "10.96.0.5:80", "10.1.0.1:4480"},
			{"udp", "[fd96::5]:80", "[fd73::1]:4480"},
			{"tcp", "10.1.0.1:30080", "10.1.0.1:30080<nil>"},
			{"tcp", "[fd73::1]:30080", "[fd73::1]:30080<nil>"},
			{"udp", "10.1.0.1:30053", "10.1.0.1:4480"},
			{"udp", "[fd73::1]:30053", "[fd73::1]:4480"},
		} {
			if !heard {
				if err := silence(c.network, c.at); err != nil {
					t.Errorf("%s %s from %s: %v", c.network, c.at, from, err)
				}
			} else if got := call(c.network, c.at, c.says); got != c.says {
				t.Errorf("%s %s from %s: %q, not %q", c.network, c.at, from, got, c.says)
			}
		}
	}
	calls("this node", true)
	if err := elsewhere(func() error {
		calls("another node", false, netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("255.255.255.0/24"))
		calls("a pod", true, netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd73::/64"))
		calls("another node again", false)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// silence is nil where nothing answers a call.
func silence(network, at string) error {
	c, err := net.DialTimeout(network, at, silent)
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(silent))
		_, _ = c.Write([]byte("?"))
		_, err = c.Read(make([]byte, 100))
	}
	if waits, ok := errors.AsType[net.Error](err); ok && waits.Timeout() {
		return nil
	}
	return errors.Join(errors.New("it is answered"), err)
}
