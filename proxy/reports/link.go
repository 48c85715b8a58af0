package reports

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/internal/socket"
)

const (
	// Every is how often a proxy reports.
	Every = 100 * time.Millisecond
	// hearMost bounds how many datagrams are taken at once, whoever floods the port.
	hearMost = 4096
	// fanOut bounds to how many peers a report is sent: of more, each time to the next of them.
	fanOut = 100
)

// rounds is how many reports it takes until each of so many peers has had one.
func rounds(peers int) int { return max(1, (peers+fanOut-1)/fanOut) }

// Counts are of datagrams since the start.
type Counts struct {
	Sent, Heard, Old, Forged, Malformed int64
}

// A Link exchanges reports. Its methods may be called from any goroutine.
type Link struct {
	conn *socket.Datagrams
	keys atomic.Pointer[[]*signer]
	now  func() time.Duration

	ear
	counted

	mu     sync.Mutex
	book   *Book
	peers  map[string]netip.AddrPort
	order  []string // of peers, in which they are told
	next   int      // whose turn it is
	number uint64
}

// ear is what Hear has.
type ear struct {
	hearing sync.Mutex
	buffer  [64 << 10]byte
	heardAt time.Duration // all that had come by then has been taken
}

// counted are datagrams since the start.
type counted struct{ sent, heard, old, forged, malformed atomic.Int64 }

// Listen opens the socket. Now is the time since the book's epoch.
func Listen(at netip.AddrPort, book *Book, now func() time.Duration) (*Link, error) {
	conn, err := socket.ListenDatagrams(at)
	if err != nil {
		return nil, fmt.Errorf("listen for reports: %w", err)
	}
	l := &Link{conn: conn, book: book, now: now, peers: map[string]netip.AddrPort{}}
	l.SetKeys(nil)
	return l, nil
}

// SetKeys has reports signed by the first of the keys, and taken that any of them signed:
// so a key is changed by putting the new one behind the old, then before it, then alone.
func (l *Link) SetKeys(keys [][]byte) {
	all := signers(keys)
	l.keys.Store(&all)
}

// SetPeers has reports sent to nodes at their addresses.
func (l *Link) SetPeers(peers map[string]netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peers, l.order = peers, slices.Collect(maps.Keys(peers))
}

// Rounds is how many reports in a row have to say something for all peers to hear it.
func (l *Link) Rounds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return rounds(len(l.peers))
}

// Address is where it listens.
func (l *Link) Address() netip.AddrPort { return l.conn.Address() }

// With has use look at the book, alone.
func (l *Link) With(use func(*Book)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use(l.book)
}

// Counts are of datagrams since the start.
func (l *Link) Counts() Counts {
	return Counts{l.sent.Load(), l.heard.Load(), l.old.Load(), l.forged.Load(), l.malformed.Load()}
}

// Hear takes the reports that have come since it was called last, each as of when it came. So they
// wake nobody: what they say is looked at once a tick.
func (l *Link) Hear() {
	l.hearing.Lock()
	defer l.hearing.Unlock()
	began := l.now()
	for range hearMost {
		n, came, err := l.conn.Take(l.buffer[:])
		if err != nil { // nothing more, or closed
			l.heardAt = began
			return
		}
		l.hear(l.buffer[:n], arrived(l.heardAt, l.now(), time.Since(came)))
	}
}

// arrived is when something came that was not there at last, and now is of an age. The age is by
// the machine's clock, which somebody may have set meanwhile.
func arrived(last, now, age time.Duration) time.Duration { return min(now, max(last, now-age)) }

func (l *Link) hear(datagram []byte, at time.Duration) {
	m, err := decode(datagram, *l.keys.Load())
	switch {
	case errors.Is(err, ErrForged):
		l.forged.Add(1)
		return
	case err != nil:
		l.malformed.Add(1)
		return
	}
	l.mu.Lock()
	news := l.book.Hear(m, at)
	l.mu.Unlock()
	if news {
		l.heard.Add(1)
	} else {
		l.old.Add(1)
	}
}

// Close gives the socket back.
func (l *Link) Close() error { return l.conn.Close() }

// Report notes what this proxy says of Services, and sends it to its peers. Without a key
// nothing is sent.
func (l *Link) Report(services []Service) {
	now := l.now()
	l.mu.Lock()
	l.book.Say(services, now)
	to := l.chosen()
	l.mu.Unlock()
	keys := *l.keys.Load()
	if len(keys) == 0 {
		return
	}
	for parts := services; ; {
		part, rest := l.fitting(parts, keys[0])
		for node, at := range to {
			l.send(node, at, part, keys[0])
		}
		if parts = rest; len(parts) == 0 {
			return
		}
	}
}

// Answer sends to those who wait to hear this proxy before they believe it.
func (l *Link) Answer() {
	keys := *l.keys.Load()
	if len(keys) == 0 {
		return
	}
	to := map[string]netip.AddrPort{}
	l.mu.Lock()
	for _, node := range l.book.Owed() {
		if at, ok := l.peers[node]; ok {
			to[node] = at
		}
	}
	l.mu.Unlock()
	for node, at := range to {
		l.send(node, at, nil, keys[0])
	}
}

// chosen are the peers that are sent to this time.
func (l *Link) chosen() map[string]netip.AddrPort {
	if len(l.peers) <= fanOut {
		return l.peers
	}
	some := make(map[string]netip.AddrPort, fanOut)
	for range fanOut {
		name := l.order[l.next%len(l.order)]
		some[name] = l.peers[name]
		l.next++
	}
	return some
}

// fitting are the first of Services, as many as a datagram holds. One that no datagram holds
// is said in parts, each with some of its flights.
func (l *Link) fitting(all []Service, key *signer) (part, rest []Service) {
	for n := min(len(all), servicesMost); n > 0; n /= 2 {
		if b, err := encode(&Message{Node: l.book.node, Epoch: l.book.epoch, Number: 1 << 60, Sent: 1 << 60, Echo: Echo{1 << 62, 1 << 60, 1 << 60}, Services: all[:n]}, key); err == nil && len(b) <= sizeMost {
			return all[:n], all[n:]
		}
	}
	if len(all) == 0 || len(all[0].Flights) < 2 {
		return nil, all[min(1, len(all)):]
	}
	one, other, half := all[0], all[0], len(all[0].Flights)/2
	one.Flights, other.Flights = one.Flights[:half], other.Flights[half:]
	return l.fitting(append([]Service{one, other}, all[1:]...), key)
}

// send sends a report to one peer, with the echo that is for it.
func (l *Link) send(node string, at netip.AddrPort, services []Service, key *signer) {
	l.mu.Lock()
	l.number++
	now := l.now()
	m := Message{Node: l.book.node, Epoch: l.book.epoch, Number: l.number, Sent: now, Echo: l.book.Echo(node, now), Services: services}
	l.mu.Unlock()
	b, err := encode(&m, key)
	if err != nil {
		return // cannot be: fitting has encoded the same
	}
	if l.conn.SendTo(b, at) == nil {
		l.sent.Add(1)
	}
}
