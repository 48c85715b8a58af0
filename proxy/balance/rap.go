package balance

import "time"

// rap is the Resource Adaptive Proxy of "Load-Balancing of Kubernetes-Based Edge
// Computing Infrastructure Using Resource Adaptive Proxy", section 4.2, Algorithm 1: at
// home while that is not overloaded, else at the best of the others. What the paper does
// not say: a node whose usage is not known is no candidate, and at home counts as not
// overloaded; a node without endpoints of its own counts as overloaded; where no other
// will do, home, and without one any endpoint.
type rap struct {
	Options
	best   *node
	looked time.Duration // when best was looked for
	begun  bool
}

// refresh looks for the best node anew, once a cycle and when that has left: the highest
// score of those below both thresholds.
func (p *rap) refresh(f *field, now time.Duration) {
	left := p.best != nil && len(p.best.endpoints) == 0
	if p.begun && !left && now-p.looked < p.Cycle {
		return
	}
	p.best, p.looked, p.begun = nil, now, len(f.nodes) > 0
	highest := 0.0
	for _, n := range f.nodes {
		if n.Local || !n.Usage.fresh(now, p.UsageAge) || p.overloaded(n, now) {
			continue
		}
		if score := p.score(n); p.best == nil || score > highest {
			p.best, highest = n, score
		}
	}
}

// overloaded says whether a node is known to use more than a threshold.
func (p *rap) overloaded(n *node, now time.Duration) bool {
	u := n.Usage
	return u.fresh(now, p.UsageAge) && (u.Value.CPU >= p.MaxCPU || u.Value.RAM >= p.MaxRAM)
}

// score is the paper's equation 2, each resource as the share that is left of it. A round
// trip that is not known leaves nothing.
func (p *rap) score(n *node) float64 {
	left := 0.0
	if n.RTT.Known {
		left = 1 - min(1, float64(n.RTT.Value)/float64(p.MaxRTT))
	}
	return p.Weights[0]*(1-n.Usage.Value.CPU) + p.Weights[1]*(1-n.Usage.Value.RAM) + p.Weights[2]*left
}

func (p *rap) observe(*endpoint, time.Duration, time.Duration) {}

func (p *rap) pick(f *field, now time.Duration) *endpoint {
	switch home := f.local; {
	case home != nil && !p.overloaded(home, now):
		return home.turn()
	case p.best != nil:
		return p.best.turn()
	case home != nil:
		return home.turn()
	default:
		return f.nodes[f.rand.IntN(len(f.nodes))].turn()
	}
}
