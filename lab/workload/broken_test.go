package workload_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"skerry.dev/skerry/lab/workload"
)

// Who is broken takes a connection, and resets it at the first word.
func TestBreak(t *testing.T) {
	l, err := workload.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- workload.Break(ctx, l) }()
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%d bytes, %v", n, err)
		}
		_ = conn.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
