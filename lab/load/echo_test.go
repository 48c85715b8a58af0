package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

func TestStreamErrorClasses(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(conn net.Conn, got []byte)
		want  string
	}{
		{"closes", func(net.Conn, []byte) {}, classClosed},
		{"closes half way", func(c net.Conn, got []byte) { _, _ = c.Write(got[:2]) }, classShortBody},
		{"says more", func(c net.Conn, got []byte) { _, _ = c.Write(append(got, '!')) }, classTrailing},
		{"says something else", func(c net.Conn, _ []byte) { _, _ = c.Write([]byte("else")) }, classWrongBody},
		{"resets", func(c net.Conn, _ []byte) { _ = c.(*net.TCPConn).SetLinger(0) }, classReset},
		{"says nothing", func(c net.Conn, _ []byte) { _, _ = c.Read(make([]byte, 1)) }, classTimeout},
	} {
		target := startRaw(t, func(conn net.Conn) {
			got := make([]byte, 4)
			if _, err := io.ReadFull(conn, got); err == nil {
				c.serve(conn, got)
			}
		})
		wantClass(t, c.name, Spec{Target: target, Workload: workload.PayloadEcho, Protocol: workload.TCP, Size: 4, Iterations: 1}, c.want)
	}
}

// An answer that is there before the question is no answer to it.
func TestStreamThatSpeaksFirst(t *testing.T) {
	const size = 8e6
	target := startRaw(t, func(conn net.Conn) {
		_, _ = conn.Write(make([]byte, size))
		_, _ = io.Copy(io.Discard, conn)
	})
	result, err := Run(t.Context(), Spec{Target: target, Workload: workload.PayloadEcho, Protocol: workload.TCP, Size: size, Iterations: 1})
	if got := errorsOf(result.Requests); !errors.Is(err, ErrNoAnswer) || len(got) != 1 || got[0] != classTrailing && got[0] != classWrongBody {
		t.Errorf("errors %q, %v", got, err)
	}
}

// startPackets serves each datagram by hand; serve may answer as often as it likes.
func startPackets(t *testing.T, serve func(packet []byte, say func([]byte))) string {
	t.Helper()
	conn, err := workload.ListenPacket(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, workload.DatagramMax)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			serve(bytes.Clone(buf[:n]), func(b []byte) { _, _ = conn.WriteToUDPAddrPort(b, from) })
		}
	}()
	return conn.LocalAddr().String()
}

func datagramSpec(target string, size quantity.Size, n int) Spec {
	return Spec{
		Target: target, Workload: workload.PayloadEcho, Protocol: workload.UDP, Size: size, Iterations: n,
		Timeout: patience,
	}
}

// Datagrams that are not the answer are neither taken for it nor in its way.
func TestForeignDatagrams(t *testing.T) {
	var last []byte
	target := startPackets(t, func(packet []byte, say func([]byte)) {
		say(nil)
		say([]byte("who?"))
		say(make([]byte, 60000))
		say(last) // once more the echo before
		say(packet)
		say(packet) // a duplicate
		last = packet
	})
	rows := run(t, datagramSpec(target, 100, 20))
	ordered(t, rows)
	if got := errorsOf(rows); !slices.Equal(got, make([]string, 20)) {
		t.Errorf("errors %q", got)
	}
}

// The echo of the request before that arrives late is not the answer, however short it is.
func TestLateCopies(t *testing.T) {
	for _, size := range []quantity.Size{1, 3, 10, 100} {
		var last []byte
		target := startPackets(t, func(packet []byte, say func([]byte)) {
			if last != nil {
				say(last)
			}
			last = packet
			time.Sleep(2 * time.Millisecond)
			say(packet)
		})
		for i, r := range run(t, datagramSpec(target, size, 20)) {
			if took := time.Duration(r.ResponseNs()); r.Error != "" || took < 2*time.Millisecond {
				t.Errorf("%s: request %d: %q after %s", size, i, r.Error, took)
			}
		}
	}
}

// A lost datagram is a timeout, and says nothing of the socket.
func TestLostDatagrams(t *testing.T) {
	t.Parallel() // it sleeps
	var seen atomic.Int32
	target := startPackets(t, func(packet []byte, say func([]byte)) {
		if seen.Add(1) != 2 {
			say(packet)
		}
	})
	for _, size := range []quantity.Size{10, 100} {
		seen.Store(0)
		s := datagramSpec(target, size, 3)
		s.Timeout = impatience
		result, err := Run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		rows := result.Requests
		if got, want := errorsOf(rows), []string{"", classTimeout, ""}; !slices.Equal(got, want) {
			t.Errorf("%s: errors %q, want %q", size, got, want)
		}
		if got, want := numbers(rows), [][2]int32{{1, 1}, {1, 2}, {1, 3}}; !slices.Equal(got, want) {
			t.Errorf("%s: connection and index %v, want %v", size, got, want)
		}
		if (result.There != nil) != (size >= workload.DatagramHeader) {
			t.Fatalf("%s: ways %v", size, result.There)
		}
		if size >= workload.DatagramHeader && (result.There[1].SentNs == 0 || result.There[1].ReceivedNs != 0 || result.Back[1] != sample.OneWay{Sequence: 1}) {
			t.Errorf("ways of a lost datagram: %+v, %+v", result.There[1], result.Back[1])
		}
	}
}

// The echo of a request that was given up answers no later one.
func TestLateDatagrams(t *testing.T) {
	t.Parallel() // it sleeps
	const pause = 60 * time.Millisecond
	seen := 0
	var late []byte
	target := startPackets(t, func(packet []byte, say func([]byte)) {
		seen++
		switch seen {
		case 2:
			late = packet
			return
		case 3:
			say(late)
			time.Sleep(pause)
		}
		say(packet)
	})
	s := datagramSpec(target, 100, 4)
	s.Timeout = impatience
	rows := run(t, s)
	if got, want := errorsOf(rows), []string{"", classTimeout, "", ""}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	if took := time.Duration(rows[2].ResponseNs()); took < pause {
		t.Errorf("request 3 is answered after %s, before its own answer was sent", took)
	}
}

func TestDatagramErrorClasses(t *testing.T) {
	t.Parallel() // it waits for a timeout
	closed := startPackets(t, func([]byte, func([]byte)) {})
	other := startPackets(t, func(packet []byte, say func([]byte)) {
		packet[len(packet)-1] ^= 1
		say(packet)
	})
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for target, want := range map[string]string{closed: classTimeout, other: classWrongBody, nobody.LocalAddr().String(): classRefused} {
		wantClass(t, target, datagramSpec(target, 100, 1), want)
	}
}

// The four times of each datagram are in order, and within its response time.
func TestOneWayTimes(t *testing.T) {
	target := startProtocol(t, workload.PayloadEcho, workload.UDP)
	closed := datagramSpec(target, 24, 50)
	open := closed
	open.Iterations, open.OpenLoop = 0, OpenLoop{Rate: 500, Duration: quantity.Duration(100 * time.Millisecond)}
	for _, s := range []Spec{closed, open} {
		s.Threads = 2
		result, err := Run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		n := len(result.Requests)
		if len(result.There) != n || len(result.Back) != n || n < 50 {
			t.Fatalf("%d requests, %d ways there, %d back", n, len(result.There), len(result.Back))
		}
		for i, r := range result.Requests {
			there, back := result.There[i], result.Back[i]
			if there.Sequence != int64(i) || back.Sequence != int64(i) {
				t.Fatalf("row %d: %+v, %+v", i, there, back)
			}
			if !(0 < there.SentNs && there.SentNs <= there.ReceivedNs && there.ReceivedNs <= back.SentNs && back.SentNs <= back.ReceivedNs) {
				t.Errorf("row %d: times out of order: %+v, %+v", i, there, back)
			}
			if ways, whole := back.ReceivedNs-there.SentNs, r.LastByteNs-r.SentNs; ways > whole {
				t.Errorf("row %d: %d ns of ways in %d ns", i, ways, whole)
			}
		}
	}
}

func TestBadProtocols(t *testing.T) {
	good := Spec{Workload: workload.PayloadEcho, Size: 100, Iterations: 1}
	for says, spoil := range map[string]func(*Spec){
		`protocol "http/3" is none of http/1.1, http/2, tcp, udp`: func(s *Spec) { s.Protocol = "http/3" },
		"hello-world is not served over tcp":                      func(s *Spec) { s.Protocol, s.Workload, s.Size = workload.TCP, workload.HelloWorld, 0 },
		"over udp an echo has at least 1 byte":                    func(s *Spec) { s.Protocol, s.Size = workload.UDP, 0 },
		"a datagram has at most 65507 bytes":                      func(s *Spec) { s.Protocol, s.Size = workload.UDP, workload.DatagramMax+1 },
	} {
		s := good
		spoil(&s)
		if err := s.Check(); !errors.Is(err, ErrSpec) || !bytes.Contains([]byte(err.Error()), []byte(says)) {
			t.Errorf("got error %v, want one that says %s", err, says)
		}
	}
}

// The end of ctx ends a load of any protocol that nobody answers.
func TestEveryProtocolIsCancelled(t *testing.T) {
	silent := startRaw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	unheard := startPackets(t, func([]byte, func([]byte)) {})
	for protocol, target := range map[string]string{workload.HTTP1: silent, workload.HTTP2: silent, workload.TCP: silent, workload.UDP: unheard} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s := datagramSpec(target, 100, 10)
		s.Protocol, s.Timeout, s.Threads = protocol, quantity.Duration(time.Hour), 3
		result, err := Run(ctx, s)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || len(result.Requests) != 0 {
			t.Errorf("%s: rows %+v, error %v", protocol, result.Requests, err)
		}
	}
}
