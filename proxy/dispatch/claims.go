package dispatch

import (
	"cmp"
	"slices"

	"skerry.dev/skerry/proxy/route"
)

// front is where clients call a port of a Service.
type front struct {
	port  *port
	entry route.Entry
}

// claims are the fronts of addresses. Several Services may want the same, as two with one
// external IP do: it is for the first of them by name, and when that goes for the next.
type claims[K comparable] struct {
	fronts map[K]*front
	rivals map[K][]*front // who would be next
}

func newClaims[K comparable]() claims[K] {
	return claims[K]{map[K]*front{}, map[K][]*front{}}
}

// claim has an address be for a front, or wait for it.
func (c claims[K]) claim(at K, f *front) {
	is := c.fronts[at]
	if is != nil && is.port != f.port {
		if order(is, f) < 0 {
			is, f = f, is
		}
		c.rivals[at] = append(c.rivals[at], is)
	}
	c.fronts[at] = f
}

// release has an address be for a port no more: the next takes it.
func (c claims[K]) release(at K, p *port) {
	rest := slices.DeleteFunc(c.rivals[at], func(f *front) bool { return f.port == p })
	if f := c.fronts[at]; f != nil && f.port == p {
		delete(c.fronts, at)
		if len(rest) > 0 {
			slices.SortFunc(rest, order)
			c.fronts[at], rest = rest[0], rest[1:]
		}
	}
	if len(rest) == 0 {
		delete(c.rivals, at)
	} else {
		c.rivals[at] = rest
	}
}

// order is that of the Services' names.
func order(a, b *front) int {
	x, y := a.port.service.Key, b.port.service.Key
	return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}
