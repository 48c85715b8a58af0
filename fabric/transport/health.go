package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Health is how a way to a peer's gateway does.
type Health struct {
	// State is one of the states; Since is when it began, zero where it never was
	// another.
	State State
	Since time.Time
	// Why says why it is unreachable.
	Why string
	// Connections are open; Idle ones of them, ahead of need.
	Connections, Idle int
	// Settled says that nothing more is being prepared: what begins now goes as fast as it
	// ever will.
	Settled bool
	// DialsFailed are those that ended without a connection that the peer takes.
	DialsFailed uint64
	// RTT is the mean of the connections' smoothed ones, MinRTT the least that the kernel
	// has seen of late; 0 where no connection is open.
	RTT, MinRTT time.Duration
	// Segments of TCP with data that the connections which are open have sent, and
	// Retransmitted of them; of QUIC packets, and those that were lost.
	Segments, Retransmitted uint64
}

// State says whether a way leads to its gateway.
type State string

// The states.
const (
	Untried State = "untried" // nobody has called yet
	Up      State = "reachable"
	Down    State = "unreachable"
)

// Dials remembers how calls of a gateway ended. The zero Dials has seen none. It is safe
// for concurrent use.
type Dials struct {
	mu     sync.Mutex
	failed uint64
	state  State
	since  time.Time
	why    string
	// alerted is when the peer has last refused a connection after the dial.
	alerted time.Time
}

// alertLasts is how long a peer's refusal stands against dials that succeed: in TLS 1.3
// a client learns after its handshake that its certificate is refused.
const alertLasts = 5 * time.Second

// Dialled notes how a dial has ended.
func (d *Dials) Dialled(err error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && now.Sub(d.alerted) < alertLasts {
		return
	}
	d.becomeLocked(err, now)
}

// Ended notes why a connection has ended: by an alert of TLS it was refused.
func (d *Dials) Ended(err error, now time.Time) {
	if remote, ok := errors.AsType[*net.OpError](err); ok && remote.Op == "remote error" {
		d.Refused(err, now)
	}
}

// Refused notes that the peer has ended a connection because of who we are.
func (d *Dials) Refused(err error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alerted = now
	d.becomeLocked(fmt.Errorf("the peer refuses us: %w", err), now)
}

func (d *Dials) becomeLocked(err error, now time.Time) {
	state, why := Up, ""
	if err != nil {
		d.failed++
		state, why = Down, err.Error()
	}
	if state != d.state {
		d.state, d.since = state, now
	}
	d.why = why
}

// Health is what the dials say, and the kernel of connections that are open.
func (d *Dials) Health(open []net.Conn, now time.Time) Health {
	d.mu.Lock()
	h := Health{State: d.state, Since: d.since, Why: d.why, DialsFailed: d.failed}
	d.mu.Unlock()
	if h.State == "" {
		h.State = Untried
	}
	h.Measure(open, now)
	return h
}

// Measure adds what the kernel knows of connections that are open: where none of them
// hears the other end, that is not reachable, however it was before.
func (h *Health) Measure(open []net.Conn, now time.Time) {
	var infos []*unix.TCPInfo
	for _, conn := range open {
		if info := InfoOf(conn); info != nil {
			infos = append(infos, info)
		}
	}
	h.measure(infos, now)
}

// silentAfter is how many retransmissions and probes in a row are not answered by who is
// not there; one may be lost.
const silentAfter = 2

func (h *Health) measure(infos []*unix.TCPInfo, now time.Time) {
	h.Connections = len(infos)
	if len(infos) == 0 {
		return
	}
	var rtt, least, heard time.Duration
	silent := 0
	for i, info := range infos {
		rtt += time.Duration(info.Rtt) * time.Microsecond
		if one := time.Duration(info.Min_rtt) * time.Microsecond; i == 0 || one < least {
			least = one
		}
		h.Segments += uint64(info.Data_segs_out)
		h.Retransmitted += uint64(info.Total_retrans)
		if one := time.Duration(info.Last_ack_recv) * time.Millisecond; i == 0 || one < heard {
			heard = one
		}
		if int(info.Retransmits)+int(info.Probes) >= silentAfter {
			silent++
		}
	}
	h.RTT, h.MinRTT = rtt/time.Duration(len(infos)), least
	if silent == len(infos) {
		h.Silent(now.Add(-heard))
	}
}

// Silent notes since when no connection hears the other end: then that is not reachable,
// however it was before.
func (h *Health) Silent(since time.Time) {
	if h.State == Up {
		h.State, h.Since, h.Why = Down, since, "its connections hear nothing"
	}
}

// InfoOf asks the kernel about a connection of TCP, or of TLS over it; nil where there is
// nothing to ask.
func InfoOf(conn net.Conn) (info *unix.TCPInfo) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	gone := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
	})
	if gone != nil || err != nil {
		return nil
	}
	return info
}
