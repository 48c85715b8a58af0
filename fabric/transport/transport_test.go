package transport_test

import (
	"errors"
	"syscall"
	"testing"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

func TestWords(t *testing.T) {
	for target, want := range map[transport.Target]string{
		{Namespace: "shop", Name: "web", Port: 80, Protocol: transport.TCP}: "shop/web:80",
		{Namespace: "shop", Name: "dns", Port: 53, Protocol: transport.UDP}: "shop/dns:53/udp",
	} {
		if got := target.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	said := map[string]bool{}
	for code := transport.Broken; code <= transport.Leaving; code++ {
		said[(&transport.Refusal{Code: code}).Error()] = true
	}
	if len(said) != int(transport.Leaving) || said["reset with code 1"] || transport.Code(99).String() != "reset with code 99" {
		t.Errorf("got %v", said)
	}
}

// The other end of a connection that is reset is told that something broke.
func TestReset(t *testing.T) {
	conn, other := conntest.Pair(t)
	transport.Reset(other)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}
