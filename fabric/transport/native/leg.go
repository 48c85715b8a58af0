package native

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// leg is the connection of TCP below one of two gateways. One of another kind has none,
// cannot be told anything and tells nothing.
type leg struct {
	tcp  *net.TCPConn
	seen *tally
}

// count is of packets, and of those that were lost.
type count struct{ packets, lost uint32 }

func (c count) plus(more count) count { return count{c.packets + more.packets, c.lost + more.lost} }

// minus is what came since. What was taken for lost may turn out to be there after all.
func (c count) minus(before count) count {
	return count{c.packets - before.packets, c.lost - min(c.lost, before.lost)}
}

// loses says that more than one packet of so many is lost, and no fewer than by chance.
func (c count) loses(oneOf, least uint32) bool { return c.lost >= least && oneOf*c.lost > c.packets }

// tally is what of TCP's counts has been told.
type tally struct {
	mu   sync.Mutex
	told count
	// own says that what is lost is this side's own making, and not told; before is what
	// was to be told before it was so.
	own    bool
	before count
	// waiting is what was lost of late, the older first.
	waiting [2]uint32
	// sent says that bytes were written since the last look, empty that none were on their way
	// then.
	sent  atomic.Bool
	empty bool

	lull atomic.Pointer[lull]
}

// lull is what runs when nothing was written for a while.
type lull struct {
	*time.Timer
	while time.Duration
}

func legOf(conn net.Conn) leg {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	return leg{socket.Plain(conn), new(tally)}
}

// Times of TCP's between gateways.
const (
	// rtoMost bounds the pause between two tries to be heard, which else doubles to two minutes:
	// a stream goes on as soon as a link that was cut is there again.
	rtoMost = time.Second
	// rtoLeast is after how long, beyond a round trip, what was not heard of is sent again when
	// no other packet tells that it is lost. It is 200 ms for peers of any kind; one of ours has
	// acknowledged by then, which it puts off for ackLate at most.
	rtoLeast = 50 * time.Millisecond
	ackLate  = 20 * time.Millisecond
)

// tune has the leg use a congestion control of its own, where one is named, and try
// often to be heard by a peer that is silent. A kernel before Linux 6.17 lacks some of it.
func (l leg) tune(congestion string) error {
	if l.tcp == nil {
		return nil
	}
	return l.control(func(fd int) error {
		for _, o := range []struct {
			name  int
			value int64
		}{
			{unix.TCP_RTO_MAX_MS, rtoMost.Milliseconds()},
			{unix.TCP_RTO_MIN_US, rtoLeast.Microseconds()},
			{unix.TCP_DELACK_MAX_US, ackLate.Microseconds()},
		} {
			err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, o.name, int(o.value))
			if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
				return fmt.Errorf("option %d of TCP: %w", o.name, err)
			}
		}
		if congestion == "" {
			return nil
		}
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion); err != nil {
			return fmt.Errorf("congestion control %s: %w", congestion, err)
		}
		return nil
	})
}

// info is what TCP knows of the path, nil where it knows nothing any more.
func (l leg) info() *unix.TCPInfo {
	if l.tcp == nil {
		return nil
	}
	return transport.InfoOf(l.tcp)
}

// tcpEstablished is the state of a connection of which neither side has closed its direction
// (TCP_ESTABLISHED of net/tcp_states.h).
const tcpEstablished = 1

// drop has what was not sent yet be dropped when the connection is closed: the peer, which does
// not read, is told at once.
func (l leg) drop() {
	if l.tcp != nil { // else there is nothing to drop
		_ = l.tcp.SetLinger(0) // of one that is over there is nothing, too
	}
}

// closed says whether one of the sides has closed the connection.
func (l leg) closed() bool {
	i := l.info()
	return i == nil || i.State != tcpEstablished
}

// tellsLittle is how many packets say nothing of a path while no stream uses it: those that ask
// whether the peer is there give way to the traffic of others like any.
const tellsLittle = 10

// since gives what TCP has sent, and what was lost of it, since this was asked last. While
// streams use the way, what is lost waits for two more looks: if a queue stands by then,
// those who share the path have lost it.
func (l leg) since(inUse bool) count {
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	if l.seen.rests() {
		return count{}
	}
	more := l.seen.before
	l.seen.before = count{}
	i := l.info()
	if i != nil && !l.seen.own {
		now := countOf(i)
		more = more.plus(now.minus(l.seen.told))
		l.seen.told, l.seen.empty = now, i.Unacked == 0 && i.Notsent_bytes == 0
	}
	if !inUse && more.packets < tellsLittle {
		more.lost = 0
	}
	more.lost = l.seen.wait(more.lost, inUse, congestedBy(i))
	return more
}

// rests says that there is nothing to ask TCP: a thousand connections on which nothing is said
// would cost as many calls of the kernel a second.
func (t *tally) rests() bool {
	return !t.sent.Swap(false) && t.empty && !t.own && t.before == count{} && t.waiting == [2]uint32{}
}

// wait takes what was just lost, and gives what is lost for sure.
func (t *tally) wait(lost uint32, inUse, queue bool) (sure uint32) {
	if queue {
		t.waiting = [2]uint32{}
		return 0
	}
	sure = t.waiting[0]
	t.waiting = [2]uint32{t.waiting[1], lost}
	if !inUse {
		sure += t.waiting[0] + t.waiting[1]
		t.waiting = [2]uint32{}
	}
	return sure
}

// congestedBy says whether a queue stands on a path, by what TCP knows of it.
func congestedBy(i *unix.TCPInfo) bool {
	return i != nil && congested(micros(i.Rtt), micros(i.Min_rtt), micros(i.Rttvar))
}

// congested says that a queue stands on the path: what is lost there is lost for being too
// much, and more of it would be the wrong answer. A path that is uneven is no queue.
func congested(rtt, least, varies time.Duration) bool { return crowded(rtt-4*varies, least) }

// blame has what is lost from now on be this side's own making, or no longer.
func (l leg) blame(own bool) {
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	if own == l.seen.own {
		return
	}
	now := l.seen.told
	if i := l.info(); i != nil {
		now = countOf(i)
	}
	if own {
		l.seen.before = l.seen.before.plus(now.minus(l.seen.told))
	}
	l.seen.own, l.seen.told = own, now
}

// forgive has what was lost of late, and will be, be that of those who share the path.
func (l leg) forgive() {
	l.blame(true)
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	l.seen.before, l.seen.waiting = count{}, [2]uint32{}
}

// countOf is TCP's. What it has sent again, and the peer had already, was not lost.
func countOf(i *unix.TCPInfo) count {
	return count{i.Data_segs_out, i.Total_retrans - min(i.Total_retrans, i.Dsack_dups)}
}

// narrow says that so many bytes would wait for others to arrive: TCP's window has no room for
// them, as after a loss, or while BBR has four packets on their way to see the shortest round
// trip.
func (l leg) narrow(bytes int) bool {
	i := l.info()
	return i != nil && !room(i, bytes)
}

// room says whether TCP would send so many bytes at once.
func room(i *unix.TCPInfo, bytes int) bool {
	free := (int(i.Snd_cwnd)-int(i.Unacked))*int(i.Snd_mss) - int(i.Notsent_bytes)
	return bytes <= free
}

// hold has no more than so many bytes wait to be sent, 0 for as many as there is room for:
// who writes until something happens has said little more when it does.
func (l leg) hold(most int) {
	if l.tcp != nil { // else there is nothing to hold
		_ = l.control(func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, most) })
	}
}

// restsFor has the leg keep what it learns of a path, of that round trip, when nothing is to be
// sent.
func (l leg) restsFor(rtt time.Duration) {
	const part = 4
	if l.tcp != nil && rtt >= shortest {
		while := rtt / part
		l.seen.lull.Store(&lull{time.AfterFunc(while, l.limited), while})
	}
}

// wrote notes that bytes were written.
func (l leg) wrote() {
	l.seen.sent.Store(true)
	if r := l.seen.lull.Load(); r != nil {
		r.Reset(r.while)
	}
}

// limited tells TCP that there was no more to send: it asks itself that when it is given bytes,
// were it none. Else what it sends again, when all else has come, is a sample of a slow path to
// BBR (tcp_rate.c), which then paces what follows.
func (l leg) limited() {
	_ = l.control(func(fd int) error { return unix.Send(fd, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) })
}

// unpaced is no bound of a rate (SO_MAX_PACING_RATE of linux/sock.h).
const unpaced = math.MaxUint32

// pace has no more than so many bytes leave in a second.
func (l leg) pace(rate uint64) {
	if l.tcp != nil { // else there is nothing to hold
		_ = l.control(func(fd int) error {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(min(rate, unpaced)))
		})
	}
}

func (l leg) control(do func(fd int) error) error {
	raw, err := l.tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// HasCongestion says whether the kernel lets this process use a congestion control.
func HasCongestion(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was said over it
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}
