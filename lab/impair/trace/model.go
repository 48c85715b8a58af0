package trace

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Names of the traces that are built in.
const (
	LTE = "lte"
	NR  = "5g"
)

// Seed is that of the traces that are built in.
const Seed = 1

// Names lists the traces that are built in.
func Names() []string { return []string{NR, LTE} }

// Built in traces last so long, in steps of so long.
const (
	modelSpan = 10 * time.Minute
	modelStep = 100 * time.Millisecond
)

// radio is a documented model of a mobile link, seen by one user who moves. Its
// rate is log-normal with two memories, as path loss and shadowing change over
// tens of seconds and fading and the share of the cell within one: what Winstein
// et al. ("Stochastic Forecasts Achieve High Throughput and Low Delay over
// Cellular Networks", NSDI 2013, section 3) saw of LTE, a rate that wanders over
// an order of magnitude, and outages in which nothing goes, at handovers. Its
// delay is a floor, a part that wanders with load and retransmissions, and a
// surcharge around handovers.
type radio struct {
	// median rate in bit/s, and the ends of what is possible.
	median, least, most float64
	// slow and fast are standard deviations of the logarithm of the rate.
	slow, fast float64
	// floor of the delay, and the standard deviation of what is on top of it.
	floor, wander time.Duration
	// handovers come apart by this at the mean, and take this at the mean.
	apart, outage time.Duration
}

func radios() map[string]radio {
	return map[string]radio{
		LTE: {median: 12e6, least: 0.3e6, most: 60e6, slow: 0.6, fast: 0.3, floor: 22 * time.Millisecond, wander: 8 * time.Millisecond, apart: 45 * time.Second, outage: 250 * time.Millisecond},
		NR:  {median: 110e6, least: 3e6, most: 400e6, slow: 0.7, fast: 0.35, floor: 8 * time.Millisecond, wander: 4 * time.Millisecond, apart: 30 * time.Second, outage: 120 * time.Millisecond},
	}
}

// Memories of the model: after so long a deviation has fallen to 1/e.
const (
	slowMemory  = 20 * time.Second
	fastMemory  = 600 * time.Millisecond
	delayMemory = 4 * time.Second
)

// Model makes a built-in trace of ten minutes; the same name and seed make the
// same trace. It is false for a name that is none of Names.
func Model(name string, seed uint64) (*Trace, bool) {
	r, known := radios()[name]
	if !known {
		return nil, false
	}
	rng := rand.New(rand.NewPCG(seed, 0x74726163))
	slow, fast := wanderer{rng: rng, memory: slowMemory}, wanderer{rng: rng, memory: fastMemory}
	delay := wanderer{rng: rng, memory: delayMemory}
	handovers := r.handovers(rng)
	t := &Trace{Span: modelSpan}
	for at := time.Duration(0); at < modelSpan; at += modelStep {
		rate := r.median * math.Exp(r.slow*slow.next()+r.fast*fast.next())
		late := time.Duration(math.Abs(delay.next()) * float64(r.wander))
		share, surcharge := handovers.at(at)
		t.Steps = append(t.Steps, Step{
			At:    at,
			Rate:  math.Round(min(max(rate, r.least), r.most)*share/1e3) * 1e3,
			Delay: (r.floor + late + surcharge).Round(10 * time.Microsecond),
		})
	}
	return t, true
}

// wanderer is an autoregressive process of mean 0 and standard deviation 1.
type wanderer struct {
	rng    *rand.Rand
	memory time.Duration
	value  float64
	begun  bool
}

func (w *wanderer) next() float64 {
	keep := math.Exp(-modelStep.Seconds() / w.memory.Seconds())
	fresh := w.rng.NormFloat64()
	if !w.begun {
		w.begun, w.value = true, fresh
		return fresh
	}
	w.value = keep*w.value + math.Sqrt(1-keep*keep)*fresh
	return w.value
}

// handovers are spans in which nothing goes.
type handovers []span

type span struct{ from, to time.Duration }

func (r radio) handovers(rng *rand.Rand) handovers {
	var all handovers
	for at := exponential(rng, r.apart); at < modelSpan; at += exponential(rng, r.apart) {
		from := at
		at += exponential(rng, r.outage)
		all = append(all, span{from, at})
	}
	return all
}

func exponential(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(mean))
}

// settles is how long packets are late after a handover: what has waited comes
// first.
const settles = time.Second

// at is the share of a step that begins then in which packets go, and what they
// take longer around a handover: as long as it took, falling to nothing.
func (h handovers) at(begins time.Duration) (share float64, surcharge time.Duration) {
	share = 1
	ends := begins + modelStep
	for _, s := range h {
		if overlap := min(ends, s.to) - max(begins, s.from); overlap > 0 {
			share -= overlap.Seconds() / modelStep.Seconds()
		}
		if since := begins - s.from; since >= 0 && begins < s.to+settles {
			left := 1 - max(0, (begins-s.to).Seconds()/settles.Seconds())
			surcharge = max(surcharge, time.Duration(left*float64(s.to-s.from)))
		}
	}
	return max(share, 0), surcharge
}

// Known reports whether a trace of the name is built in.
func Known(name string) bool { return slices.Contains(Names(), name) }
