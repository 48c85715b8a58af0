package workload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"skerry.dev/skerry/internal/clock"
)

// serving runs a server until the test ends, and returns how to end it sooner.
func serving(t *testing.T, serve func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	ended := false
	stop = func() {
		cancel()
		if !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

func dialTo(t *testing.T, network, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Every byte comes back before the next is sent, and the end of the client's
// direction is answered with the end of the other.
func TestStreamEcho(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := serving(t, func(ctx context.Context) error { return ServeStream(ctx, l) })
	conn := dialTo(t, "tcp", l.Addr().String())
	for _, sent := range [][]byte{{0}, []byte("hello"), bytes.Repeat([]byte("long "), 100_000)} {
		go func() { _, _ = conn.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes came back differently, %v", len(sent), err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
	idle := dialTo(t, "tcp", l.Addr().String())
	begin := time.Now()
	stop()
	if _, err := idle.Read(make([]byte, 1)); err == nil || time.Since(begin) > stopGrace/2 {
		t.Errorf("stopped after %s, the open stream: %v", time.Since(begin), err)
	}
}

func TestPacketEcho(t *testing.T) {
	p, err := ListenPacket(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := serving(t, func(ctx context.Context) error { return ServePackets(ctx, p) })
	conn := dialTo(t, "udp", p.LocalAddr().String())
	ask := func(sent []byte) []byte {
		t.Helper()
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, DatagramMax+1)
		n, err := conn.Read(got)
		if err != nil {
			t.Fatal(err)
		}
		return got[:n]
	}
	for name, sent := range map[string][]byte{
		"nothing": {}, "short": []byte("x"), "long": bytes.Repeat([]byte("y"), DatagramMax),
		"magic, but too short for a head": []byte(datagramMagic + "0123456789012345678"),
	} {
		if got := ask(sent); !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes came back as %d others", name, len(sent), len(got))
		}
	}
	sent := append(make([]byte, DatagramHeader), "payload"...)
	PutDatagram(sent, Datagram{Sequence: 7})
	before := clock.Real()
	got := ask(sent)
	after := clock.Real()
	d, err := ReadDatagram(got)
	if err != nil || d.Sequence != 7 || !bytes.Equal(got[DatagramHeader:], []byte("payload")) {
		t.Fatalf("came back as %+v with %q, %v", d, got, err)
	}
	if !(before <= d.ArrivedNs && d.ArrivedNs <= d.AnsweredNs && d.AnsweredNs <= after) {
		t.Errorf("times %+v are not in order between %d and %d", d, before, after)
	}
	stop()
}

// FuzzReadDatagram holds that a head that reads is the head that would be written.
func FuzzReadDatagram(f *testing.F) {
	head := make([]byte, 40)
	PutDatagram(head, Datagram{Sequence: 1, ArrivedNs: 1_700_000_000_000_000_000, AnsweredNs: 2})
	f.Add(head)
	f.Add(head[:DatagramHeader-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadDatagram(b)
		if err != nil {
			return
		}
		again := make([]byte, DatagramHeader)
		PutDatagram(again, d)
		if d.ArrivedNs < 0 || d.AnsweredNs < 0 || !bytes.Equal(again, b[:DatagramHeader]) {
			t.Errorf("% x is read as %+v", b[:DatagramHeader], d)
		}
	})
}

// FuzzArrival holds that no control data panics.
func FuzzArrival(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 35, 0, 0, 0}, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		if at := ArrivalNs(b); len(b) < 32 && at != 0 {
			t.Errorf("% x has the time %d", b, at)
		}
	})
}
