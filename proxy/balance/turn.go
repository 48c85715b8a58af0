package balance

import "time"

// roundRobin takes the endpoints in turn.
type roundRobin struct{ next int }

func (*roundRobin) refresh(*field, time.Duration)                   {}
func (*roundRobin) observe(*endpoint, time.Duration, time.Duration) {}

func (p *roundRobin) pick(f *field, _ time.Duration) *endpoint {
	p.next = (p.next + 1) % len(f.endpoints)
	return f.endpoints[p.next]
}

// random takes any endpoint.
type random struct{}

func (random) refresh(*field, time.Duration)                   {}
func (random) observe(*endpoint, time.Duration, time.Duration) {}

func (random) pick(f *field, _ time.Duration) *endpoint {
	return f.endpoints[f.rand.IntN(len(f.endpoints))]
}

// turn takes a node's endpoints in turn.
func (n *node) turn() *endpoint {
	n.next = (n.next + 1) % len(n.endpoints)
	return n.endpoints[n.next]
}

// two draws two endpoints of a list, different ones where it has more than one.
func (f *field) two(of []*endpoint) (a, b *endpoint) {
	i := f.rand.IntN(len(of))
	if len(of) == 1 {
		return of[0], of[0]
	}
	j := f.rand.IntN(len(of) - 1)
	if j >= i {
		j++
	}
	return of[i], of[j]
}
