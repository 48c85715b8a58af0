package native

import "sync/atomic"

// Peer is what the connections to and from all gateways of a cluster have in common.
type Peer struct {
	// Training teaches TCP the paths to it; nil for none.
	Training *Training
	Extra    *Extra
}

// Extra counts the bytes that go to a cluster for the sake of what its streams say. It is
// safe for concurrent use.
type Extra struct {
	// Training are of padding (see Training), Copies of what is said twice.
	Training, Copies atomic.Uint64
	// Data are of blocks that go in pieces, Parity of the pieces that stand in for them.
	Data, Parity atomic.Uint64
}

// piece counts one that goes.
func (e *Extra) piece(s shard, bytes int) {
	if s.index < s.shape.data {
		e.Data.Add(uint64(bytes))
		return
	}
	e.Parity.Add(uint64(bytes))
}
