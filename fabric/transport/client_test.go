package transport_test

import (
	"net"
	"testing"

	"skerry.dev/skerry/fabric/transport"
)

// What a gateway says of a client is the same at all gateways.
func TestClientOf(t *testing.T) {
	for text, a := range map[string]net.Addr{
		"192.0.2.7:80":     &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7).To16(), Port: 80},
		"[2001:db8::1]:53": &net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 53},
		"[fe80::1]:80":     &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 80, Zone: "eth0"},
		"":                 &net.UnixAddr{Name: "/x"},
	} {
		got, err := transport.ClientOf(a).MarshalText()
		if err != nil || string(got) != text {
			t.Errorf("%v: got %q, %v, want %q", a, got, err, text)
		}
	}
	for _, text := range []string{"", "192.0.2.7", "192.0.2.7:", "2001:db8::1:53", "[::ffff:192.0.2.7]:80", "[fe80::1%eth0]:80", "[2001:DB8::1]:53", "192.0.2.7:080", "x:80"} {
		if err := new(transport.Client).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// What is taken is said again as it was.
func FuzzUnmarshalText(f *testing.F) {
	f.Add([]byte("192.0.2.7:80"))
	f.Add([]byte("[2001:db8::1]:53"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c transport.Client
		if c.UnmarshalText(text) != nil {
			return
		}
		if again, err := c.MarshalText(); err != nil || string(again) != string(text) || !c.Addr().IsValid() {
			t.Errorf("%q is %q, %v", text, again, err)
		}
	})
}
