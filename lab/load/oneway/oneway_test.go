package oneway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/lab/sample"
)

type result struct {
	Heard
	err error
}

// listen starts a listener on loopback and says where it listens.
func listen(ctx context.Context, t *testing.T, count int, idle time.Duration) (string, <-chan result) {
	t.Helper()
	ready, done := make(chan netip.AddrPort, 1), make(chan result, 1)
	go func() {
		h, err := Listen(ctx, ListenSpec{Addr: "127.0.0.1:0", Flows: 1, Count: count, Idle: idle, Ready: func(a netip.AddrPort) { ready <- a }})
		done <- result{h, err}
	}()
	select {
	case a := <-ready:
		return a.String(), done
	case r := <-done:
		t.Fatal(r.err)
		return "", nil
	}
}

func TestTalkerIsHeard(t *testing.T) {
	const count, rate = 100, 1000
	addr, done := listen(t.Context(), t, count, 10*time.Second)
	talked, err := Talk(t.Context(), TalkSpec{Target: addr, Rate: rate, Count: count, Size: 256})
	if err != nil || talked.Sent != count || talked.Refused != 0 {
		t.Fatalf("talked %+v, %v", talked, err)
	}
	h := <-done
	if h.err != nil || h.Received != count || h.Duplicates != 0 || h.Strays != 0 || h.Overflowed != 0 {
		t.Fatalf("heard %d of %d, error %v", h.Received, count, h.err)
	}
	for i, p := range h.Packets {
		if p.Sequence != int64(i) || p.SentNs == 0 || p.ReceivedNs < p.SentNs {
			t.Errorf("packet %d: %+v", i, p)
		}
		// No packet leaves before its cycle; the first one may have been late.
		if early := h.Packets[0].SentNs + int64(i)*int64(time.Second)/rate - talked.LateMaxNs - p.SentNs; early > int64(time.Millisecond) {
			t.Errorf("packet %d left %d ns before its cycle", i, early)
		}
	}
	if h.BufferBytes < 4<<20 {
		t.Errorf("receive buffer of %d bytes; raise net.core.rmem_max", h.BufferBytes)
	}
}

// Every way to send plans the packets of a flow a cycle apart, and none leaves before its
// time; a device without ETF sends those with a transmission time at once.
func TestWaysToSend(t *testing.T) {
	const count, rate, lead = 20, 1000, 3 * time.Millisecond
	for _, way := range []string{Spin, Sleep, Txtime} {
		addr, done := listen(t.Context(), t, count, 10*time.Second)
		talked, err := Talk(t.Context(), TalkSpec{Target: addr, Rate: rate, Count: count, Size: 64, Sends: way, Lead: lead, Priority: 5})
		if err != nil || talked.Sent != count {
			t.Fatalf("%s: talked %+v, %v", way, talked, err)
		}
		h := <-done
		if h.err != nil || h.Received != count {
			t.Fatalf("%s: heard %d, %v", way, h.Received, h.err)
		}
		for i, p := range h.Packets {
			if apart := p.SentNs - h.Packets[0].SentNs; apart != int64(i)*int64(time.Second)/rate {
				t.Errorf("%s: packet %d was planned %d ns after the first", way, i, apart)
			}
			if early := p.SentNs - p.ReceivedNs; way != Txtime && early > 0 || way == Txtime && early > int64(lead) {
				t.Errorf("%s: packet %d came %d ns early", way, i, early)
			}
		}
	}
}

func TestLostDuplicateAndStrayPackets(t *testing.T) {
	addr, done := listen(t.Context(), t, 4, 200*time.Millisecond)
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sequence := range []int64{3, 0, 0, 4, 1} {
		packet := make([]byte, 64)
		header{sequence: sequence, sentNs: 100 + sequence}.put(packet)
		if _, err := conn.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	h := <-done
	if h.err != nil {
		t.Fatal(h.err)
	}
	if h.Received != 3 || h.Lost != 1 || h.Duplicates != 1 || h.Reordered != 2 || h.Strays != 2 {
		t.Errorf("received %d, lost %d, duplicates %d, reordered %d, strays %d; want 3, 1, 1, 2, 2", h.Received, h.Lost, h.Duplicates, h.Reordered, h.Strays)
	}
	for i := range h.Packets {
		if i == 2 {
			continue
		}
		if h.Packets[i].ReceivedNs == 0 {
			t.Errorf("packet %d has no arrival time", i)
		}
		if h.Packets[i].ReadNs < h.Packets[i].ReceivedNs {
			t.Errorf("packet %d was read before it arrived: %+v", i, h.Packets[i])
		}
		h.Packets[i].ReceivedNs, h.Packets[i].ReadNs = 0, 0
	}
	want := []sample.OneWay{{Sequence: 0, SentNs: 100}, {Sequence: 1, SentNs: 101}, {Sequence: 2}, {Sequence: 3, SentNs: 103}}
	if !slices.Equal(h.Packets, want) {
		t.Errorf("packets %+v, want %+v", h.Packets, want)
	}
}

func TestSilence(t *testing.T) {
	_, done := listen(t.Context(), t, 2, 20*time.Millisecond)
	h := <-done
	if !errors.Is(h.err, ErrSilence) || len(h.Packets) != 2 {
		t.Errorf("got %d rows and error %v, want 2 and %v", len(h.Packets), h.err, ErrSilence)
	}
}

func TestTalkWithoutListener(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := conn.LocalAddr().String()
	conn.Close()
	got, err := Talk(t.Context(), TalkSpec{Target: addr, Rate: 1000, Count: 20, Size: SizeMin})
	if err != nil || got.Refused == 0 || got.Sent+got.Refused != 20 {
		t.Errorf("talked %+v, %v; want some of 20 refused", got, err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr, done := listen(ctx, t, 100_000, time.Hour)
	time.AfterFunc(50*time.Millisecond, cancel)
	talked, err := Talk(ctx, TalkSpec{Target: addr, Rate: 100, Count: 100_000, Size: 64})
	if !errors.Is(err, context.Canceled) || talked.Sent == 0 {
		t.Errorf("talker: sent %d, error %v", talked.Sent, err)
	}
	if h := <-done; !errors.Is(h.err, context.Canceled) || h.Received == 0 {
		t.Errorf("listener: received %d, error %v", h.Received, h.err)
	}
}

func TestBadSpecs(t *testing.T) {
	good := TalkSpec{Target: "127.0.0.1:9", Rate: 1, Count: 1, Size: SizeMin}
	for name, spoil := range map[string]func(*TalkSpec){
		"rate 0":    func(s *TalkSpec) { s.Rate = 0 },
		"rate over": func(s *TalkSpec) { s.Rate = rateMax + 1 },
		"count 0":   func(s *TalkSpec) { s.Count = 0 },
		"size 23":   func(s *TalkSpec) { s.Size = SizeMin - 1 },
		"size over": func(s *TalkSpec) { s.Size = SizeMax + 1 },
		"how":       func(s *TalkSpec) { s.Sends = "soon" },
		"lead":      func(s *TalkSpec) { s.Lead = -1 },
		"flow":      func(s *TalkSpec) { s.Flow = flowsMax },
		"priority":  func(s *TalkSpec) { s.Priority = 8 },
	} {
		s := good
		spoil(&s)
		if _, err := Talk(t.Context(), s); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: got error %v, want %v", name, err, ErrSpec)
		}
	}
	for _, s := range []ListenSpec{
		{Addr: "127.0.0.1:0", Flows: 1, Idle: time.Second}, {Addr: "127.0.0.1:0", Flows: 1, Count: 1},
		{Addr: "127.0.0.1:0", Count: 1, Idle: time.Second}, {Addr: "127.0.0.1:0", Flows: flowsMax, Count: countMax, Idle: time.Second},
	} {
		if _, err := Listen(t.Context(), s); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: got error %v, want %v", s, err, ErrSpec)
		}
	}
}

// FuzzParse holds that a header that reads is the header that would be written.
func FuzzParse(f *testing.F) {
	packet := make([]byte, 64)
	header{flow: 3, sequence: 7, sentNs: 1_700_000_000_000_000_000}.put(packet)
	f.Add(packet)
	f.Add(packet[:headerLen-1])
	f.Add([]byte("SKRY"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parse(b)
		if err != nil {
			return
		}
		again := make([]byte, headerLen)
		h.put(again)
		if h.sequence < 0 || h.sentNs < 0 || !bytes.Equal(again, b[:headerLen]) {
			t.Errorf("% x is read as %+v", b[:headerLen], h)
		}
	})
}

// FuzzControl holds that no control data panics.
func FuzzControl(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 35, 0, 0, 0}, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		if at, dropped := parseControl(b); len(b) < 16 && (at != 0 || dropped != 0) {
			t.Errorf("% x has time %d and %d drops", b, at, dropped)
		}
	})
}
