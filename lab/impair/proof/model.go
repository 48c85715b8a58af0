package proof

import (
	"math/rand/v2"
	"slices"

	"skerry.dev/skerry/lab/impair"
)

// model is a link as it was asked for. It is written apart from the back ends, so
// that it can contradict them.
type model struct {
	stages impair.Stages
	asked  impair.Impairment
	// gone is how likely a packet that did not arrive was dropped by each stage,
	// the last by the receiver, which takes no corrupted one: it used the rate of
	// all stages before. Not all are 0.
	gone []float64
}

func newModel(stages impair.Stages) model {
	m := model{stages: stages, asked: stages.Together(), gone: make([]float64, len(stages)+1)}
	there := 1.0
	for i, s := range stages {
		m.gone[i] = there * s.MeanLoss()
		there *= 1 - s.MeanLoss()
	}
	m.gone[len(stages)] = there * float64(m.asked.Corrupt)
	if slices.Max(m.gone) == 0 { // whatever took it was no part of the link
		m.gone[0] = 1
	}
	return m
}

// certain is the one place where a packet can have been dropped, if it is one.
func (m model) certain() (stage int, ok bool) {
	for i, p := range m.gone {
		if p > 0 && ok {
			return 0, false
		}
		if p > 0 {
			stage, ok = i, true
		}
	}
	return stage, ok
}

// varies reports that packets sent alike may cross the link in different times.
func (m model) varies() bool {
	_, certain := m.certain()
	return m.asked.Jitter > 0 || m.asked.Reorder > 0 || m.asked.Rate > 0 && (m.asked.Duplicate > 0 || !certain)
}

// dropped draws the stage that a packet did not pass.
func (m model) dropped(random *rand.Rand) int {
	if stage, ok := m.certain(); ok {
		return stage
	}
	total := 0.0
	for _, p := range m.gone {
		total += p
	}
	rest := random.Float64() * total
	for i, p := range m.gone {
		if rest -= p; rest < 0 {
			return i
		}
	}
	return len(m.gone) - 1
}

// passage is a packet on its way over the link, or a copy, which is number -1.
type passage struct {
	number int
	frame  float64 // bytes
	// stages that it passes.
	stages int
	// at is when it comes to the next of them.
	at int64
}

// pass fills in when the packets that arrived are due behind the link, all others
// are only in their way.
func (m model) pass(sent []Timed, random *rand.Rand, due []int64) {
	under := make([]passage, len(sent))
	for i, t := range sent {
		under[i] = passage{number: i, frame: float64(t.Payload + overhead), stages: len(m.stages), at: t.SentNs}
		if t.ReceivedNs == 0 {
			under[i].stages = m.dropped(random)
		}
	}
	earlier := func(a, b passage) int { return int(a.at - b.at) }
	for i, s := range m.stages {
		under = slices.DeleteFunc(under, func(p passage) bool { return p.stages <= i })
		if !slices.IsSortedFunc(under, earlier) {
			slices.SortStableFunc(under, earlier)
		}
		under = cross(s, under, random)
	}
	for _, p := range under {
		if p.number >= 0 {
			due[p.number] = p.at
		}
	}
}

// cross takes packets over one stage: serialisation, then the delay with its
// jitter, in order unless the stage may change it. Copies come behind all others.
func cross(s impair.Impairment, under []passage, random *rand.Rand) []passage {
	var free, last int64
	n := len(under)
	for i := range n {
		p := &under[i]
		leaves, takes := p.at, int64(0)
		if s.Rate > 0 {
			takes = int64(p.frame / float64(s.Rate) * 8e9)
			free = max(free, p.at) + takes
			leaves = free
		}
		skips := s.Reorder > 0 && random.Float64() < float64(s.Reorder)
		p.at = leaves
		if !skips {
			p.at += max(0, int64(s.Delay)+jitter(s, random))
		}
		if !s.Unordered && !skips {
			p.at = max(p.at, last)
			last = p.at
		}
		if s.Duplicate > 0 && random.Float64() < float64(s.Duplicate) {
			free += takes
			under = append(under, passage{number: -1, frame: p.frame, stages: p.stages, at: p.at + takes})
		}
	}
	return under
}

func jitter(asked impair.Impairment, random *rand.Rand) int64 {
	if asked.Jitter == 0 {
		return 0
	}
	return int64(asked.Quantile(random.Float64()) * float64(asked.Jitter))
}
