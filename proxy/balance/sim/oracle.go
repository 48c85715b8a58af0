package sim

import (
	"time"

	"skerry.dev/skerry/proxy/balance"
)

// oracle knows what is at every server and on its way there.
type oracle struct {
	way [][]time.Duration // by server: when each that was sent there arrives, or arrived
}

// pick takes the pod from which the answer will come first, if each request takes the
// average: those that are there, and those that will be before this one, go first.
func (o *oracle) pick(r *run, at int) (int, balance.Ticket) {
	if o.way == nil {
		o.way = make([][]time.Duration, len(r.servers))
	}
	best, least := 0, time.Duration(1<<62)
	for to := range r.servers {
		if r.Nodes[to].Fails {
			continue
		}
		if t := o.answered(r, at, to); t < least {
			best, least = to, t
		}
	}
	o.way[best] = append(o.way[best], r.now+r.toServer(at, best))
	return best, balance.Ticket{}
}

// answered is when the answer would be there.
func (o *oracle) answered(r *run, at, to int) time.Duration {
	arrives := r.now + r.toServer(at, to)
	takes := time.Duration(float64(r.Service) * max(1, r.Nodes[to].Slower))
	s := &r.servers[to]
	cores := make([]time.Duration, s.cores) // when each is free
	for i := range cores {
		cores[i] = r.now
	}
	give := func(from time.Duration) time.Duration {
		first := 0
		for i := range cores {
			if cores[i] < cores[first] {
				first = i
			}
		}
		cores[first] = max(cores[first], from) + takes
		return cores[first]
	}
	for range s.here() {
		give(r.now)
	}
	ahead := o.way[to][:0]
	for _, t := range o.way[to] {
		if t > r.now {
			ahead = append(ahead, t)
		}
	}
	o.way[to] = ahead
	for _, t := range ahead {
		if t <= arrives {
			give(t)
		}
	}
	return give(arrives) + r.back(at, to)
}

func (*oracle) done(*run, *request)   {}
func (*oracle) reportUsage(*run)      {}
func (*oracle) reportQueue(*run, int) {}
