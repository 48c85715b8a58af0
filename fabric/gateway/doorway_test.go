package gateway

import (
	"fmt"
	"net"
	"testing"
)

// Who opens many handshakes holds up no other; there is a bound to all.
func TestDoorway(t *testing.T) {
	var d doorway
	from := func(address string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i := range handshakesOfOne {
		if !d.enter(from(fmt.Sprintf("[2001:db8::%x]:80", i))) {
			t.Fatalf("handshake %d has no room", i)
		}
	}
	if d.enter(from("[2001:db8::ffff]:80")) {
		t.Error("one more of the same network is let in")
	}
	if !d.enter(from("192.0.2.1:80")) {
		t.Error("another is not let in")
	}
	d.leave(from("[2001:db8::1]:80"))
	if !d.enter(from("[2001:db8::1]:81")) {
		t.Error("there is no room again")
	}
	for i := range handshakesMax {
		d.enter(from(fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)))
	}
	if d.all != handshakesMax || d.enter(from("198.51.100.1:80")) {
		t.Errorf("%d are under way", d.all)
	}
}
