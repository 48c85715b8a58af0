package native

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/reedsolomon"

	"skerry.dev/skerry/fabric/transport"
)

// A block of a stream's bytes is cut into pieces, which cross on lanes of their own beside
// pieces of parity (Reed–Solomon): as many as there are data pieces, of either kind, make
// the block. A packet that is lost holds up its lane for a round trip, and nothing else.

// shape is into how many pieces a block is cut.
type shape struct{ data, parity int }

const (
	// pieceLeast is what fills a packet, so that a small block has few pieces.
	pieceLeast = 1280
	// dataLeast is the least number of pieces for which one of parity is a fifth or less.
	dataLeast = 5
	// blockLeast is the smallest block that is worth pieces.
	blockLeast = dataLeast * pieceLeast
	// parityOf of this many data pieces there is one of parity.
	parityOf = 13.0 / 2
)

// shapeOf a block of so many bytes over so many lanes.
func shapeOf(size, lanes int) shape {
	data := min(packetsOf(size), int(float64(lanes)/(1+1/parityOf)))
	return shape{data, max(1, int(float64(data)/parityOf))}
}

// packetsOf a block of so many bytes.
func packetsOf(size int) int { return (size + pieceLeast - 1) / pieceLeast }

// piece is the length of each of its pieces.
func (s shape) piece(size int) int { return (size + s.data - 1) / s.data }

// block says which one a piece is of.
type block struct {
	// connection is the number of the one that its stream owns, number counts its blocks.
	connection, number uint32
}

// shard is the header of a piece.
type shard struct {
	block
	size  int // of the block
	shape shape
	index int // data pieces first
}

const (
	shardBytes = 16
	piecesMax  = 256
)

// length of the piece that follows.
func (s shard) length() int { return s.shape.piece(s.size) }

// append adds the header to a buffer.
func (s shard) append(to []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, s.connection)
	to = binary.BigEndian.AppendUint32(to, s.number)
	to = binary.BigEndian.AppendUint32(to, uint32(s.size))
	return append(to, byte(s.shape.data), byte(s.shape.parity), byte(s.index), 0)
}

// readShard reads a header, and holds it to bounds. Of no data pieces it is padding, of
// that size; of one, and none of parity, a copy.
func readShard(r io.Reader) (shard, error) {
	var b [shardBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return shard{}, err
	}
	s := shard{
		block: block{binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:])},
		size:  int(binary.BigEndian.Uint32(b[8:])),
		shape: shape{int(b[12]), int(b[13])}, index: int(b[14]),
	}
	pieces := s.shape.data + s.shape.parity
	// Of crumbs a block would be much work, and cost the peer little more than their headers.
	whole := s.shape.data > 0 && s.shape.parity > 0 && s.shape.data <= packetsOf(s.size) && pieces <= piecesMax && s.index < pieces
	padding := pieces == 0 && s.index == 0
	twice := s.isCopy() && s.index <= copyOfOpen && s.size <= copyMost
	if s.size < 1 || s.size > blockMax || b[15] != 0 || !whole && !padding && !twice {
		return s, fmt.Errorf("piece %d of %d and %d of a block of %d bytes: %w", s.index, s.shape.data, s.shape.parity, s.size, transport.ErrProtocol)
	}
	return s, nil
}

// codecs are the matrices of shapes that were used of late.
type codecs struct {
	mu  sync.Mutex
	all map[shape]reedsolomon.Encoder
}

// codecsMost is how many shapes have theirs kept: a peer names the shapes of what it sends, and
// over thirty lanes it has 22.
const codecsMost = 32

func (c *codecs) of(s shape) (reedsolomon.Encoder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.all[s]; known != nil {
		return known, nil
	}
	// The library would keep a matrix for all that was ever lost together.
	made, err := reedsolomon.New(s.data, s.parity, reedsolomon.WithInversionCache(false))
	if err != nil {
		return nil, err
	}
	for other := range c.all {
		if len(c.all) < codecsMost {
			break
		}
		delete(c.all, other) // whichever
	}
	c.all[s] = made
	return made, nil
}

// cut makes the pieces of a block; those of data are within the given bytes where those
// are as long as all of them.
func (c *codecs) cut(data []byte, s shape) ([][]byte, error) {
	codec, err := c.of(s)
	if err != nil {
		return nil, err
	}
	pieces, err := codec.Split(data)
	if err == nil {
		err = codec.Encode(pieces)
	}
	return pieces, err
}

// join makes the block of pieces, of which those that are missing have no length.
func (c *codecs) join(pieces [][]byte, s shape) error {
	codec, err := c.of(s)
	if err != nil {
		return err
	}
	return codec.ReconstructData(pieces)
}
