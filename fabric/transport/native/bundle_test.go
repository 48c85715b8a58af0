package native

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"skerry.dev/skerry/fabric/transport"
)

// Parity is a fifth of the data at most, and a piece fills a packet where it can.
func TestShapeOf(t *testing.T) {
	for _, c := range []struct {
		size, lanes int
		want        shape
	}{
		{blockMax, 30, shape{26, 4}},
		{20 << 10, 30, shape{16, 2}},
		{blockLeast, 30, shape{5, 1}},
		{blockMax, 6, shape{5, 1}},
	} {
		got := shapeOf(c.size, c.lanes)
		if got != c.want {
			t.Errorf("%d bytes on %d lanes: %+v, want %+v", c.size, c.lanes, got, c.want)
		}
		if 5*got.parity > got.data || got.data+got.parity > c.lanes {
			t.Errorf("%d bytes on %d lanes: %+v", c.size, c.lanes, got)
		}
	}
}

// pieces of a block, as the peer sends them.
func pieces(t *testing.T, b *bundle, k block, data []byte) (all []shard, bytes [][]byte) {
	t.Helper()
	s := shard{block: k, size: len(data), shape: shapeOf(len(data), lanesMost)}
	bytes, err := b.codecs.cut(data, s.shape)
	if err != nil {
		t.Fatal(err)
	}
	for s.index = range bytes {
		all = append(all, s)
	}
	return all, bytes
}

// A block is made of any pieces that are enough, in any order, and those that come later
// are nobody's.
func TestAnyPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	number := b.admit(nil, 0)
	for n := range uint32(50) {
		data := make([]byte, blockLeast+random.IntN(blockMax-blockLeast+1))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		k := block{number, n + 1}
		shards, bytesOf := pieces(t, b, k, data)
		for at, i := range random.Perm(len(shards)) {
			if at == shards[i].shape.data {
				got, err := b.take(k)
				if joined := bytes.Join(got, nil); err != nil || !bytes.Equal(joined, data) {
					t.Fatalf("block %d: %d bytes, %v", n, len(joined), err)
				}
			}
			if err := b.add(shards[i], bytesOf[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if b.room != bundleRoom || len(b.users[number].blocks) != 0 {
		t.Errorf("%d bytes are held", bundleRoom-b.room)
	}
}

// What a peer must not say ends its lane; what is of a connection that is over does not.
func TestAddRefused(t *testing.T) {
	b := newBundle(newBundleID(), lanesMost, new(Extra))
	number := b.admit(nil, 0)
	shards, data := pieces(t, b, block{number, 1}, make([]byte, blockMax))
	other, _ := pieces(t, b, block{number, 1}, make([]byte, blockMax/2))
	if err := errors.Join(b.add(shards[0], data[0]), b.add(shards[0], data[0])); err != nil {
		t.Error(err)
	}
	if err := b.add(other[1], data[1]); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("a block of two sizes: %v", err)
	}
	far := shards[0]
	far.number = 1 + blocksAhead
	if err := b.add(far, data[0]); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("a block too far ahead: %v", err)
	}
	if _, err := b.take(block{number, 2}); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("a block out of turn: %v", err)
	}
	b.forget(number)
	if err := b.add(shards[1], data[1]); err != nil || b.room != bundleRoom {
		t.Errorf("of a connection that is over: %v, %d bytes held", err, bundleRoom-b.room)
	}
}

// Who waits for a block is told when it will never come.
func TestTakeOfBroken(t *testing.T) {
	for name, end := range map[string]func(*bundle, uint32){
		"the bundle ends":     func(b *bundle, _ uint32) { b.fail(errBundle) },
		"the connection ends": func(b *bundle, n uint32) { b.forget(n) },
	} {
		b := newBundle(newBundleID(), lanesMost, new(Extra))
		number := b.admit(nil, 0)
		told := make(chan error)
		go func() {
			_, err := b.take(block{number, 1})
			told <- err
		}()
		end(b, number)
		if err := <-told; err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A block whose pieces may have gone with a lane ends the bundle if it stays away.
func TestBlockLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(newBundleID(), lanesMost, new(Extra))
		for i := range b.lanes {
			near, far := net.Pipe()
			defer far.Close()
			b.lanes[i].Store(newLane(near))
		}
		number := b.admit(nil, 0)
		b.ended(0, b.lanes[0].Load())
		if _, err := b.take(block{number, 1}); !errors.Is(err, errBundle) {
			t.Errorf("got %v", err)
		}
	})
}

// Any bytes on a lane are pieces, padding or a breach, and hold no more than they may.
func FuzzLane(f *testing.F) {
	good := shard{block: block{1, 1}, size: blockLeast, shape: shapeOf(blockLeast, lanesMost)}
	f.Add(append(good.append(nil), make([]byte, good.length())...))
	f.Add(append(shard{size: 3}.append(nil), 1, 2, 3))
	f.Add(shard{block: block{1, 2}, size: 1 << 30, shape: shape{255, 255}, index: 254}.append(nil))
	f.Fuzz(func(t *testing.T, said []byte) {
		b := newBundle(newBundleID(), lanesMost, new(Extra))
		b.admit(nil, 1)
		near, far := net.Pipe()
		go func() {
			_, _ = far.Write(said)
			_ = far.Close()
		}()
		if err := newLane(near).read(b); err == nil {
			t.Error("a lane that ends has a reason")
		}
		held := 0
		for _, u := range b.users {
			for _, a := range u.blocks {
				held += a.size
			}
		}
		if held != bundleRoom-b.room || held > len(said)*piecesMax*pieceLeast {
			t.Errorf("%d bytes held, %d of room left", held, b.room)
		}
	})
}
