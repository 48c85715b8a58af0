package oneway

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/clock"
)

// openPorts opens two ports on the loopback; the kernel asks for CAP_NET_RAW to
// bind to an interface before Linux 5.7.
func openPorts(t *testing.T) (a, b *Port) {
	t.Helper()
	for _, p := range []**Port{&a, &b} {
		port, err := OpenPort(t.Context(), "127.0.0.1:0", "lo")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = port.Close() })
		*p = port
	}
	return a, b
}

// drained takes what arrives until n packets have, or for a second.
func drained(t *testing.T, p *Port, n int) (sequences, times []int64) {
	t.Helper()
	for range 1000 {
		err := p.Drain(func(sequence, receivedNs int64) {
			sequences, times = append(sequences, sequence), append(times, receivedNs)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(sequences) >= n {
			return sequences, times
		}
		time.Sleep(time.Millisecond)
	}
	return sequences, times
}

func TestPortsTimePackets(t *testing.T) {
	a, b := openPorts(t)
	if _, times := drained(t, a, 0); len(times) > 0 {
		t.Errorf("%d packets before any was sent", len(times))
	}
	const n = 500 // more than a default buffer holds at this size
	var sent []int64
	for i := range int64(n) {
		at, err := a.Send(b.Addr(), 1<<40+i, 1400)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, at)
	}
	before := clock.Real()
	time.Sleep(5 * time.Millisecond) // arrival is the kernel's, not the reader's
	sequences, times := drained(t, b, n)
	if len(sequences) != n || !slices.IsSorted(sequences) || sequences[0] != 1<<40 {
		t.Fatalf("%d packets of %d, sequences %v…", len(sequences), n, sequences[:min(3, len(sequences))])
	}
	for i, at := range times {
		if at < sent[i] || at > before {
			t.Errorf("packet %d was sent at %d and came at %d, the last send ended at %d", i, sent[i], at, before)
		}
	}
	// A port sends and receives.
	if _, err := b.Send(a.Addr(), 7, SizeMin); err != nil {
		t.Fatal(err)
	}
	if sequences, _ := drained(t, a, 1); !slices.Equal(sequences, []int64{7}) {
		t.Errorf("back come %v, want 7", sequences)
	}
}

func TestPortLeavesStraysOut(t *testing.T) {
	a, b := openPorts(t)
	stray, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stray.Close() })
	for _, text := range []string{"", "hello", "SKRY and more than a header is long"} {
		if _, err := stray.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Send(b.Addr(), 3, SizeMin); err != nil {
		t.Fatal(err)
	}
	if sequences, _ := drained(t, b, 1); !slices.Equal(sequences, []int64{3}) {
		t.Errorf("got %v, want 3 alone", sequences)
	}
	// Nobody receives there: the packet is lost, and the port lives on.
	for range 3 {
		if _, err := a.Send(netip.MustParseAddrPort("127.0.0.1:9"), 1, SizeMin); err != nil {
			t.Errorf("send to nobody: %v", err)
		}
	}
}

func TestOpenPortFails(t *testing.T) {
	for _, c := range []struct{ address, device string }{{"127.0.0.1:0", "nonesuch"}, {"192.0.2.1:0", "lo"}} {
		if p, err := OpenPort(t.Context(), c.address, c.device); err == nil {
			t.Errorf("%s on %s is open", c.address, c.device)
			_ = p.Close()
		}
	}
}

func TestSleepUntil(t *testing.T) {
	due := clock.Mono() + int64(3*time.Millisecond)
	if err := SleepUntil(due); err != nil || clock.Mono() < due {
		t.Errorf("awake %d ns early, %v", due-clock.Mono(), err)
	}
	began := clock.Mono()
	if err := SleepUntil(began - int64(time.Hour)); err != nil || clock.Mono()-began > int64(time.Second) {
		t.Errorf("a time that has passed: %v", err)
	}
}
