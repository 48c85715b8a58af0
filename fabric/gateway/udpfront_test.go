package gateway

import (
	"container/list"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

// A client is never refused for what others have: the one that was silent for the longest gives
// way, of its own flows where it has many.
func TestFrontGivesWay(t *testing.T) {
	f := &udpFront{flows: map[flowKey]*clientFlow{}, clients: map[netip.Addr]*list.List{}}
	client := func(n uint32, port uint16) flowKey {
		return flowKey{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n))), port)}
	}
	for n := range uint32(frontFlowsMax) {
		f.addLocked(client(n, 1))
	}
	f.flows[client(0, 1)].until = time.Now().Add(time.Hour) // nothing is tried
	f.flow(client(0, 1))                                    // it speaks again
	for n := range uint32(3) {
		if f.addLocked(client(frontFlowsMax+n, 1)) == nil {
			t.Fatal("a client is refused")
		}
	}
	for n, stays := range []bool{true, false, false, false, true} {
		if has := f.flows[client(uint32(n), 1)] != nil; has != stays {
			t.Errorf("client %d has a flow: %t", n, has)
		}
	}
	for port := range uint16(clientFlowsMax + 1) {
		f.addLocked(client(9999, port))
	}
	if f.flows[client(9999, 0)] != nil || f.clients[client(9999, 0).client.Addr()].Len() != clientFlowsMax {
		t.Error("the flows of one client")
	}
	if len(f.flows) != frontFlowsMax || f.all.Len() != frontFlowsMax {
		t.Errorf("%d flows, and %d in order", len(f.flows), f.all.Len())
	}
}
