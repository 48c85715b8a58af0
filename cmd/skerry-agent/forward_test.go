package main

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// listening gives a listener on loopback for the time of the test.
func listening(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// What is asked before one half is closed is answered after it.
func TestForward(t *testing.T) {
	server, front := listening(t), listening(t)
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("got "), all...))
		_ = conn.Close()
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- forward(ctx, front, server.Addr().String()) }()
	conn, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || string(said) != "got hello" {
		t.Errorf("%q, %v", said, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Where nobody listens the connection is reset, not left open.
func TestForwardToNobody(t *testing.T) {
	gone, front := listening(t), listening(t)
	address := gone.Addr().String()
	_ = gone.Close()
	go func() { _ = forward(t.Context(), front, address) }()
	conn, err := net.Dial("tcp", front.Addr().String())
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}
