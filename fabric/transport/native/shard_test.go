package native

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/reedsolomon"

	"skerry.dev/skerry/fabric/transport"
)

// lose drops so many pieces at random, but for those that have to be there.
func lose(pieces [][]byte, n int, random *rand.Rand) (left [][]byte) {
	left = append(left, pieces...)
	for _, i := range random.Perm(len(left))[:n] {
		left[i] = nil
	}
	return left
}

// However many shapes a peer makes, and whatever of them is lost, little of it is kept.
func TestCodecsKeepLittle(t *testing.T) {
	c := codecs{all: map[shape]reedsolomon.Encoder{}}
	for data := range 2 * codecsMost {
		if _, err := c.of(shape{dataLeast + data, 2}); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.all) > codecsMost {
		t.Errorf("%d shapes are kept", len(c.all))
	}
	random := rand.New(rand.NewPCG(1, 2))
	large := shape{60, 60}
	pieces, err := c.cut(make([]byte, blockLeast), large)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 {
		if err := c.join(lose(pieces, large.parity, random), large); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<19 {
		t.Errorf("%d bytes are kept of what was lost", kept)
	}
	runtime.KeepAlive(&c)
}

// A block has no more pieces of data than its sender can fill packets with: to make one of many
// costs more than to send their headers.
func TestShapeOfCrumbs(t *testing.T) {
	for size, want := range map[int]error{127 * pieceLeast: transport.ErrProtocol, 127*pieceLeast + 1: nil} {
		s := shard{block: block{1, 1}, size: size, shape: shape{128, 4}}
		if _, err := readShard(bytes.NewReader(s.append(nil))); !errors.Is(err, want) {
			t.Errorf("128 pieces of %d bytes: %v", size, err)
		}
	}
}

// What it costs to join a block of which pieces are lost, with the library's cache of matrices
// and without.
func BenchmarkJoin(b *testing.B) {
	for _, cached := range []bool{true, false} {
		for _, lost := range []int{1, 4} {
			b.Run(fmt.Sprintf("cache=%t/lost=%d", cached, lost), func(b *testing.B) {
				s := shapeOf(blockMax, lanesMost)
				codec, err := reedsolomon.New(s.data, s.parity, reedsolomon.WithInversionCache(cached))
				if err != nil {
					b.Fatal(err)
				}
				c := codecs{all: map[shape]reedsolomon.Encoder{s: codec}}
				pieces, err := c.cut(make([]byte, blockMax), s)
				if err != nil {
					b.Fatal(err)
				}
				random := rand.New(rand.NewPCG(1, 2))
				b.SetBytes(blockMax)
				for b.Loop() {
					if err := c.join(lose(pieces, lost, random), s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
