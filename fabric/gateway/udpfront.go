package gateway

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/datagram"
)

// udpFront is where local clients call a service of peers by UDP. Each client's address
// is a flow.
//
// A datagram: the socket → serve → the client's flow → its link; and back: link → answer
// → the socket, which sends from the address that the client has asked.
type udpFront struct {
	d    *datagrams
	conn *net.UDPConn
	raw  syscall.RawConn
	// asked is how answers find the address to leave from, nil where there is but one.
	asked *destinations
	of    atomic.Pointer[snapshot.Import]
	// leaving says that no more flows are opened.
	leaving atomic.Bool

	mu    sync.Mutex
	flows map[flowKey]*clientFlow
	// clients have their flows by address, the one first whose client has been silent for
	// the longest.
	clients map[netip.Addr]*list.List
	// all of them, in the same order.
	all list.List
}

// flowKey is who calls, and where.
type flowKey struct {
	client netip.AddrPort
	at     destination
}

// clientFlow is one of a front. The front holds its lock.
type clientFlow struct {
	key flowKey
	of  *snapshot.Import
	// flow is nil while there is none: then nothing is tried until a time.
	flow  *datagram.Flow
	peer  string
	entry *ledger.Stream // of the flow
	until time.Time
	// why there is none, as the log was told; forgetting says that it is to be forgotten.
	why        string
	forgetting bool
	// tries are those that were refused: another begins with another gateway.
	tries int
	// element is that of the client's list, among that of all.
	element, among *list.Element
}

// Bounds of a front.
const (
	// clientFlowsMax is how many flows a client's address has: of more, the one that has
	// been silent for the longest gives way.
	clientFlowsMax = 1024
	// frontFlowsMax is how many there are in all, with those that were refused; likewise.
	frontFlowsMax = 8192
)

// Times of flows that could not be opened.
const (
	// refusedFor is how long what a client says is dropped after a refusal, so that it does
	// not cost a flow each time.
	refusedFor = time.Second
	// missingFor is how long when there was no connection to a peer.
	missingFor = 100 * time.Millisecond
	// rememberFor is how long a refusal makes the next flow take another gateway.
	rememberFor = 30 * time.Second
)

func newUDPFront(d *datagrams, address netip.AddrPort, i *snapshot.Import) (*udpFront, error) {
	network := "udp" // at [::] clients call by IPv4 as well, as with TCP
	if address.Addr().Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	f := &udpFront{d: d, conn: conn, flows: map[flowKey]*clientFlow{}, clients: map[netip.Addr]*list.List{}}
	f.of.Store(i)
	f.raw, err = conn.SyscallConn()
	if err == nil && address.Addr().IsUnspecified() {
		f.asked, err = newDestinations(conn, address.Addr())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return f, nil
}

// serve takes what clients say until the front is closed.
func (f *udpFront) serve() {
	buf, control := make([]byte, datagram.DatagramBytes+1), make([]byte, controlBytes)
	for {
		n, m, _, client, err := f.conn.ReadMsgUDPAddrPort(buf, control)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			f.d.g.log.Error("cannot receive", "at", f.conn.LocalAddr().String(), "why", err.Error())
			time.Sleep(acceptPause)
			continue
		}
		key := flowKey{client: client}
		if f.asked != nil {
			key.at = f.asked.parse(control[:m])
		}
		if flow := f.flow(key); flow != nil {
			flow.Send(buf[:n])
		} else {
			f.d.drops.Refused.Add(1)
		}
	}
}

// flow gives a client's flow, which it opens where there is none; nil where it cannot be
// opened.
func (f *udpFront) flow(key flowKey) *datagram.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.flows[key]
	if one == nil {
		if one = f.addLocked(key); one == nil {
			return nil
		}
	}
	f.clients[key.client.Addr()].MoveToBack(one.element)
	f.all.MoveToBack(one.among)
	if one.flow == nil && !f.leaving.Load() && !time.Now().Before(one.until) {
		f.openLocked(one)
	}
	return one.flow
}

// addLocked makes room for a client's flow, unless the gateway leaves.
func (f *udpFront) addLocked(key flowKey) *clientFlow {
	if f.leaving.Load() {
		return nil
	}
	if of := f.clients[key.client.Addr()]; of != nil && of.Len() >= clientFlowsMax {
		f.giveWayLocked(of.Front())
	} else if f.all.Len() >= frontFlowsMax {
		f.giveWayLocked(f.all.Front())
	}
	of := f.clients[key.client.Addr()]
	if of == nil {
		of = list.New()
		f.clients[key.client.Addr()] = of
	}
	one := &clientFlow{key: key}
	one.element, one.among = of.PushBack(one), f.all.PushBack(one)
	f.flows[key] = one
	return one
}

// giveWayLocked ends a flow for another.
func (f *udpFront) giveWayLocked(e *list.Element) {
	oldest := e.Value.(*clientFlow)
	f.removeLocked(oldest)
	oldest.end(transport.Overloaded)
}

// caller is the client as peers are told of it.
func (k flowKey) caller() transport.Client {
	return transport.ClientOf(net.UDPAddrFromAddrPort(k.client))
}

// openLocked opens a flow to the first gateway that is ready, or says why it cannot.
func (f *udpFront) openLocked(one *clientFlow) {
	one.of = f.of.Load()
	client, g := one.key.caller(), f.d.g
	request := transport.Request{Target: one.of.Target, Source: g.local(g.state.Load(), client), Client: client, Traffic: transport.NewTraffic(time.Now())}
	entry := g.ledger.Begin(flow.Record{Direction: flow.Import, Service: one.of.Target, From: request.Source, Client: one.key.client.String()}, request.Traffic)
	links, allowed, why := f.d.reachable(one.of, entry)
	answer := f.answer(one.key, request.Traffic)
	for k := range links {
		l := links[(k+one.tries)%len(links)]
		opened, err := l.Open(request, answer, func(code transport.Code) { f.ended(one, code) })
		if err == nil {
			entry.Chosen(l.peer, allowed[l.peer])
			entry.Via(l.address).Opened()
			one.flow, one.peer, one.entry = opened, l.peer, entry
			return
		}
		why = err.Error()
	}
	wait := refusedFor
	if len(links) > 0 {
		wait = missingFor
	}
	if why != one.why {
		entry.Refuse(entry.Reason(), why)
	}
	f.refuseLocked(one, why, wait)
}

// answer sends what a service says to a client.
func (f *udpFront) answer(key flowKey, t *transport.Traffic) func([]byte) {
	to, control := sockaddr(key.client), f.asked.control(key.at)
	return func(b []byte) {
		if err := datagram.SendNow(f.raw, b, control, to); err != nil {
			f.d.drops.Socket.Add(1)
			return
		}
		t.ToSocket(len(b))
	}
}

// refuseLocked has nothing tried for a client for a while, and tells the log why, once.
func (f *udpFront) refuseLocked(one *clientFlow, why string, wait time.Duration) {
	one.until = time.Now().Add(wait)
	if why != one.why {
		one.why = why
		f.d.g.log.Info("flow refused", "service", one.of.String(), "client", one.key.client.String(), "why", why)
	}
	if one.forgetting {
		return
	}
	one.forgetting = true
	time.AfterFunc(rememberFor, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.forgetting = false; one.flow == nil {
			f.removeLocked(one)
		}
	})
}

// ended notes that a flow is over. What the client says next opens another; at once,
// unless the peer has refused it.
func (f *udpFront) ended(one *clientFlow, code transport.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := code == datagram.Over || code == transport.Leaving
	if one.flow = nil; over {
		one.entry.End(nil)
	} else {
		one.entry.End(&transport.Refusal{Code: code})
	}
	switch {
	case f.flows[one.key] != one:
	case over:
		f.removeLocked(one)
	default:
		one.tries++
		f.refuseLocked(one, code.String(), refusedFor)
	}
}

// end ends a flow that is open.
func (one *clientFlow) end(code transport.Code) {
	if one.flow != nil {
		go one.flow.End(code) // which takes the front's lock
	}
}

func (f *udpFront) removeLocked(one *clientFlow) {
	if f.flows[one.key] != one {
		return
	}
	delete(f.flows, one.key)
	f.all.Remove(one.among)
	client := one.key.client.Addr()
	f.clients[client].Remove(one.element)
	if f.clients[client].Len() == 0 {
		delete(f.clients, client)
	}
}

// recheck ends flows of what is not imported any more, or not from that peer, or not
// allowed.
func (f *udpFront) recheck() {
	now := f.of.Load()
	state := f.d.g.state.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.flows {
		same := one.of.Target == now.Target && slices.Contains(now.From, one.peer)
		if one.flow == nil || !same || !state.policies.Decide(f.d.g.local(state, one.key.caller()), flow.To(one.peer, now.Target)).Allowed {
			f.removeLocked(one)
			one.end(transport.Denied)
		}
	}
}

// close ends the front and its flows.
func (f *udpFront) close() {
	_ = f.conn.Close() // nothing is lost by it
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.flows {
		f.removeLocked(one)
		one.end(datagram.Over)
	}
}
