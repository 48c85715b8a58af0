package userspace

// pending is a 4-ary min-heap of packets by due time, then by arrival order, so
// that packets due together leave in the order they came.
type pending struct {
	items []waiting
	next  uint64
}

// waiting is one packet that the kernel holds for us.
type waiting struct {
	due      int64
	sequence uint64
	id       uint32
	queue    uint16
}

func (w waiting) before(o waiting) bool {
	return w.due < o.due || w.due == o.due && w.sequence < o.sequence
}

func newPending(capacity int) *pending {
	return &pending{items: make([]waiting, 0, capacity)}
}

// full reports that the bound is reached: a packet more would grow the heap.
func (p *pending) full() bool { return len(p.items) == cap(p.items) }

func (p *pending) push(due int64, queue uint16, id uint32) {
	w := waiting{due: due, sequence: p.next, id: id, queue: queue}
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
