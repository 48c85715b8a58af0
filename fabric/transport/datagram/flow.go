package datagram

import (
	"container/list"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/transport"
)

// Over is the code of a flow that ended without anything being wrong: nothing came for a
// while, or its connection is gone.
const Over transport.Code = 0

// Flow is what a client and a service say to each other by UDP, on its way between two
// gateways.
type Flow struct {
	// lane has its number.
	lane   lane
	c      *connection
	stream *quic.Stream
	// traffic counts what is sent to the peer.
	traffic *transport.Traffic
	// ended is told once what the peer was told of the flow's end and what it has told, without
	// the connection's lock.
	ended func(told, heard transport.Code)

	// The connection's lock is held for these.
	receive func([]byte) // takes what the peer says, and never waits; nil until there is who does
	element *list.Element
	last    time.Time // when something was said
	over    bool
}

// Send passes a datagram on to the peer. It does not wait, and what is sent is not known
// to arrive.
func (f *Flow) Send(datagram []byte) {
	if len(datagram) > DatagramBytes {
		f.c.drops.Long.Add(1)
		return
	}
	if !f.c.touch(f) {
		f.c.drops.Late.Add(1)
		return
	}
	f.traffic.ToPeer(len(datagram))
	f.c.drops.Queue.Add(uint64(f.c.queue.add(&f.lane, append([]byte(nil), datagram...))))
}

// End ends the flow, and tells the peer why.
func (f *Flow) End(code transport.Code) { f.end(code, Over) }

// end ends the flow with what the peer is told of it and what it has told.
func (f *Flow) end(tell, heard transport.Code) {
	if f.c.remove(f) {
		f.tell(tell, heard)
	}
}

// tell says that the flow is over, once.
func (f *Flow) tell(peer, heard transport.Code) {
	f.stream.CancelWrite(quic.StreamErrorCode(peer))
	f.stream.CancelRead(quic.StreamErrorCode(peer))
	f.ended(peer, heard)
}
