package userspace

import "math/rand/v2"

// parcels hold what is known of a packet beside what pending says: its frame
// where it has stages to come, its bytes where they are needed. Slot 0 is for
// those that none is kept of.
type parcels struct {
	all  []parcel
	free []int32
	// buffers that are not in use, and how many there may still be.
	buffers [][]byte
	left    int
}

type parcel struct {
	// frame is the bytes on the wire.
	frame int
	// bytes of the packet, from its IP header on; nil where they stay in the kernel.
	bytes []byte
	// altered packets leave with these bytes.
	altered bool
	// copied ones are copies: the kernel holds no packet of theirs.
	copied bool
}

// bufferLeast holds a packet of the usual MTU.
const bufferLeast = 2048

func newParcels(parcelsMax, buffersMax int) *parcels {
	return &parcels{all: make([]parcel, 1, parcelsMax+1), left: buffersMax}
}

// add keeps a packet, with its own copy of the bytes unless they are nil. It is 0
// where there is no room.
func (p *parcels) add(frame int, bytes []byte) (slot int32) {
	switch n := len(p.free); {
	case bytes != nil && !p.room():
		return 0
	case n > 0:
		slot = p.free[n-1]
		p.free = p.free[:n-1]
	case len(p.all) < cap(p.all):
		slot = int32(len(p.all))
		p.all = append(p.all, parcel{})
	default:
		return 0
	}
	kept := parcel{frame: frame}
	if bytes != nil {
		kept.bytes = append(p.buffer(len(bytes)), bytes...)
	}
	p.all[slot] = kept
	return slot
}

// hold has the packet in a slot keep its bytes, or a packet that has none in a new
// one. It is 0 where there is no room.
func (p *parcels) hold(slot int32, frame int, bytes []byte) int32 {
	switch {
	case slot == 0:
		return p.add(frame, bytes)
	case p.all[slot].bytes != nil:
	case !p.room():
		return 0
	default:
		p.all[slot].bytes = append(p.buffer(len(bytes)), bytes...)
	}
	return slot
}

// room reports that there is a buffer for one more.
func (p *parcels) room() bool { return len(p.buffers) > 0 || p.left > 0 }

func (p *parcels) buffer(length int) []byte {
	n := len(p.buffers)
	if n == 0 {
		p.left--
		return make([]byte, 0, max(length, bufferLeast))
	}
	b := p.buffers[n-1]
	p.buffers = p.buffers[:n-1]
	return b[:0]
}

// at is the packet in a slot until it is removed.
func (p *parcels) at(slot int32) *parcel { return &p.all[slot] }

// remove gives a slot back; of slot 0 there is nothing to give.
func (p *parcels) remove(slot int32) {
	if slot == 0 {
		return
	}
	if b := p.all[slot].bytes; b != nil {
		p.buffers = append(p.buffers, b)
	}
	p.all[slot] = parcel{}
	p.free = append(p.free, slot)
}

// restrict takes back what cannot be done to a packet of these bytes: copy one whose
// bytes are not known, or corrupt one that has none behind its IP header.
func (o *outcome) restrict(bytes []byte) {
	o.duplicated = o.duplicated && bytes != nil
	o.corrupted = o.corrupted && corruptible(bytes) > 0
}

// corruptible is how many bytes stand behind the IP header.
func corruptible(bytes []byte) int {
	header, _ := networkHeader(bytes)
	return max(0, len(bytes)-header)
}

// flip alters one bit behind the IP header, each as likely as another.
func flip(bytes []byte, random *rand.Rand) {
	n := corruptible(bytes)
	const bits = 8
	bit := random.IntN(n * bits)
	bytes[len(bytes)-n+bit/bits] ^= 1 << (bit % bits)
}
