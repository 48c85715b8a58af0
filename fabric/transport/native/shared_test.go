package native

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/hashicorp/yamux"

	"skerry.dev/skerry/internal/conntest"
)

// Where as many streams share a connection as may, another is not opened, and may go elsewhere;
// the connection is kept, and takes one when another has ended.
func TestSharedMost(t *testing.T) {
	near, far := net.Pipe()
	mux, err := yamux.Client(near, sharing())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := yamux.Server(far, sharing())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	defer mux.Close()
	go func() {
		for {
			one, err := peer.AcceptStream()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, one)
				_ = one.Close()
			}()
		}
	}()
	p, s := NewPool("", nil, Options{}), &session{Session: mux}
	p.shared = s
	var last net.Conn
	for range sharedMost {
		if last, err = s.place(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.place(t.Context(), s); !errors.Is(err, errCrowded) || p.shared != s {
		t.Errorf("one more: %v", err)
	}
	_ = last.Close()
	conntest.Await(t, "a place", func() bool { _, err := s.place(); return err == nil })
}
