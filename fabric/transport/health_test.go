package transport

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
)

// A way is as its last dial was; a peer that refuses after the handshake is not
// reachable, though dials succeed.
func TestDials(t *testing.T) {
	at := time.Unix(1000, 0)
	refused := errors.New("connection refused")
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}
	var d Dials
	for _, step := range []struct {
		after  time.Duration
		do     func(now time.Time)
		state  State
		since  time.Duration
		why    string
		failed uint64
	}{
		{0, func(time.Time) {}, Untried, 0, "", 0},
		{time.Second, func(now time.Time) { d.Dialled(refused, now) }, Down, 1 * time.Second, "connection refused", 1},
		{2 * time.Second, func(now time.Time) { d.Dialled(refused, now) }, Down, 1 * time.Second, "connection refused", 2},
		{3 * time.Second, func(now time.Time) { d.Dialled(nil, now) }, Up, 3 * time.Second, "", 2},
		{4 * time.Second, func(now time.Time) { d.Ended(io.EOF, now) }, Up, 3 * time.Second, "", 2},
		{5 * time.Second, func(now time.Time) { d.Ended(alert, now) }, Down, 5 * time.Second, "the peer refuses us: remote error: tls: expired certificate", 3},
		{6 * time.Second, func(now time.Time) { d.Dialled(nil, now) }, Down, 5 * time.Second, "the peer refuses us: remote error: tls: expired certificate", 3},
		{20 * time.Second, func(now time.Time) { d.Dialled(nil, now) }, Up, 20 * time.Second, "", 3},
	} {
		step.do(at.Add(step.after))
		h := d.Health(nil, at.Add(step.after))
		if h.State != step.state || h.Why != step.why || h.DialsFailed != step.failed || h.State != Untried && !h.Since.Equal(at.Add(step.since)) {
			t.Errorf("after %s: got %+v", step.after, h)
		}
	}
}

// What the kernel knows of connections becomes one figure of each kind. A way is down
// when none of them hears the other end.
func TestMeasure(t *testing.T) {
	now := time.Unix(1000, 0)
	hears := &unix.TCPInfo{Rtt: 20_000, Min_rtt: 19_000, Data_segs_out: 100, Total_retrans: 1, Retransmits: 1, Last_ack_recv: 10}
	silent := &unix.TCPInfo{Rtt: 40_000, Min_rtt: 18_000, Data_segs_out: 10, Total_retrans: 4, Retransmits: 3, Last_ack_recv: 7000}
	idle := &unix.TCPInfo{Rtt: 40_000, Min_rtt: 18_000, Probes: 2, Last_ack_recv: 45_000}
	for _, c := range []struct {
		infos []*unix.TCPInfo
		want  Health
	}{
		{nil, Health{State: Up}},
		{[]*unix.TCPInfo{hears, silent}, Health{State: Up, Connections: 2, RTT: 30 * time.Millisecond, MinRTT: 18 * time.Millisecond, Segments: 110, Retransmitted: 5}},
		{[]*unix.TCPInfo{silent, idle}, Health{
			State: Down, Since: now.Add(-7 * time.Second), Why: "its connections hear nothing",
			Connections: 2, RTT: 40 * time.Millisecond, MinRTT: 18 * time.Millisecond, Segments: 10, Retransmitted: 4,
		}},
	} {
		h := Health{State: Up}
		if h.measure(c.infos, now); h != c.want {
			t.Errorf("got  %+v\nwant %+v", h, c.want)
		}
	}
}

// The kernel is asked about connections that are open, and one that is closed is none.
func TestHealthOfConnections(t *testing.T) {
	conn, other := conntest.Pair(t)
	_, _ = conn.Write([]byte("x"))
	if _, err := other.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	var d Dials
	if h := d.Health([]net.Conn{conn}, time.Now()); h.Connections != 1 || h.RTT <= 0 || h.Segments == 0 {
		t.Errorf("open: %+v", h)
	}
	conn.Close()
	if h := d.Health([]net.Conn{conn}, time.Now()); h.Connections != 0 || h.RTT != 0 {
		t.Errorf("closed: %+v", h)
	}
}
