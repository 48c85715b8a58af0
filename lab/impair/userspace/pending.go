package userspace

// pending is a 4-ary min-heap of packets by due time, then by arrival order, so
// that packets due together leave in the order they came.
type pending struct {
	items []waiting
	next  uint32
}

// waiting is one packet that the kernel holds for us, or a copy of one. It has four
// fields, so that the compiler keeps it in registers, and of four of them one and
// a half cache lines are full: what few packets need is in a parcel.
type waiting struct {
	due int64
	// sequence wraps around: of packets that wait at a time none are half of its
	// range apart.
	sequence uint32
	id       uint32
	place
}

// place is where a packet waits: in which stage of which queue's direction.
type place struct {
	// slot of its parcel, 0 for none.
	slot int32
	// where is the queue and, in its last 8 bits, the stage.
	where uint32
}

const stageBits = 8

// inFirst is the first stage of a queue's direction.
func inFirst(queue uint16) place { return place{where: uint32(queue) << stageBits} }

func (p place) queue() uint16 { return uint16(p.where >> stageBits) }

func (p place) stage() int { return int(p.where & (1<<stageBits - 1)) }

func (w waiting) before(o waiting) bool {
	return w.due < o.due || w.due == o.due && int32(w.sequence-o.sequence) < 0
}

func newPending(capacity int) *pending {
	return &pending{items: make([]waiting, 0, capacity)}
}

// full reports that the bound is reached: a packet more would grow the heap.
func (p *pending) full() bool { return len(p.items) == cap(p.items) }

// push adds a packet behind those that are due at the same time.
func (p *pending) push(w waiting) {
	w.sequence = p.next
	p.next++
	p.items = append(p.items, w)
	i := len(p.items) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !w.before(p.items[parent]) {
			break
		}
		p.items[i] = p.items[parent]
		i = parent
	}
	p.items[i] = w
}

// pop takes the earliest packet; the heap must not be empty.
func (p *pending) pop() waiting {
	top := p.items[0]
	last := len(p.items) - 1
	w := p.items[last]
	p.items = p.items[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= last {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, last); c++ {
			if p.items[c].before(p.items[least]) {
				least = c
			}
		}
		if !p.items[least].before(w) {
			break
		}
		p.items[i] = p.items[least]
		i = least
	}
	p.items[i] = w
	return top
}
