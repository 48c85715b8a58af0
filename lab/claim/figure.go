package claim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

// figure is what is drawn once: the metric of a cell.
type figure struct {
	side  experiment.Side
	limit quantity.Duration
}

// draw resamples a figure, unless another claim has.
func (j judge) draw(s experiment.Side, limit quantity.Duration) measure.Drawn {
	if s.Metric != experiment.MetricShare {
		limit = 0
	}
	of := figure{s, limit}
	d, ok := j.drawn[of]
	if !ok {
		cell := j.cells[s.Cell]
		d = cell.draw(s.Metric, float64(limit), chance(cell, s.Metric))
		j.drawn[of] = d
	}
	return d
}

// chance draws the repetitions of all cells alike, since a run takes each of them by
// turns, and their values by the cell's and the metric's own.
func chance(c Cell, metric string) measure.Chance {
	const stream = 0x636c61696d // "claim"
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.ID() + metric)) // a hash takes everything
	return measure.Chance{Turns: rand.New(rand.NewPCG(0, stream)), Values: rand.New(rand.NewPCG(h.Sum64(), stream))}
}

func (c Cell) draw(metric string, limit float64, by measure.Chance) measure.Drawn {
	nothing := measure.Drawn{Value: math.NaN()}
	switch metric {
	case "first":
		return c.First.DrawQuantile(0.5, by)
	case experiment.MetricRate:
		return measure.DrawMean(c.Rates, len(c.Rates), by)
	case experiment.MetricJitter:
		return c.Jitter.DrawIQR(by)
	case experiment.MetricErrors:
		hits, of := measure.Failures(c.Repetitions)
		return measure.DrawShare(hits, of, by)
	}
	if c.Values == nil || c.Values.Len() == 0 {
		return nothing
	}
	switch metric {
	case experiment.MetricShare:
		hits, of := c.Values.HitsOver(limit)
		return measure.DrawShare(hits, of, by)
	case "mean":
		return measure.DrawMean(c.Values.Means(), len(c.Values.Pooled()), by)
	case experiment.MetricIQRMean:
		return c.Values.DrawIQRMean(by)
	case experiment.MetricIQR:
		return c.Values.DrawIQR(by)
	case experiment.MetricP25:
		return c.Values.DrawQuantile(0.25, by)
	case "p90":
		return c.Values.DrawQuantile(0.90, by)
	case "p99":
		return c.Values.DrawQuantile(0.99, by)
	case experiment.MetricOfLimit:
		return c.Values.DrawQuantile(0.5, by).Under(float64(c.Limit))
	case "p50":
		return c.Values.DrawQuantile(0.5, by)
	}
	return nothing
}

// contrastOf makes the claim's figure of the values, all Of before all To. A
// slope comes in the claim's units.
func contrastOf(c experiment.Claim, xs []float64) func([]float64) (low, high float64) {
	switch c.Kind {
	case experiment.KindRatio:
		return ratio
	case experiment.KindSlope:
		return slope(scaled(c, xs))
	case experiment.KindCrossing:
		return func(v []float64) (low, high float64) { return crossing(xs, v) }
	case experiment.KindOrder:
		if equal(c) == 0 {
			return func(v []float64) (low, high float64) { return v[1] - v[0], v[1] - v[0] }
		}
		return func(v []float64) (low, high float64) { return v[1] / v[0], v[1] / v[0] }
	}
	return func(v []float64) (low, high float64) {
		if len(v) > 1 {
			v[0] -= v[1]
		}
		return v[0], v[0]
	}
}

// equal is the figure of an order in which neither comes first: a ratio of 1,
// or of shares a difference of 0.
func equal(c experiment.Claim) float64 {
	if len(c.Order) > 0 && experiment.MetricUnit(c.MetricOf(&c.Order[0])) == experiment.UnitShare {
		return 0
	}
	return 1
}

func ratio(v []float64) (low, high float64) { return v[0] / v[1], v[0] / v[1] }

// units are how many base units (ns, bytes, …) lie in a unit of a slope.
func units(name string) float64 {
	switch name {
	case "ms":
		return 1e6
	case "KB":
		return 1e3
	}
	return 1
}

// scaled are the weights of a least-squares slope, (x−x̄) / Σ (x−x̄)², for
// values and levels in base units and a slope in the claim's.
func scaled(c experiment.Claim, xs []float64) []float64 {
	ofFigure, ofFactor := c.SlopeUnit()
	centre := measure.Sorted(xs).Mean()
	var spread float64
	for _, x := range xs {
		spread += (x - centre) * (x - centre)
	}
	weights := make([]float64, len(xs))
	for i, x := range xs {
		weights[i] = (x - centre) / spread * units(ofFactor) / units(ofFigure)
	}
	return weights
}

func slope(weights []float64) func([]float64) (low, high float64) {
	return func(v []float64) (low, high float64) {
		var sum float64
		for i, w := range weights {
			y := v[i]
			if len(v) > len(weights) {
				y -= v[len(weights)+i]
			}
			sum += w * y
		}
		return sum, sum
	}
}

// crossing is where the line Of, which joins its points, rises above the line
// To: at first and at last. It is +Inf where it never does, and −Inf where it
// lies above from the first point on. Lines that cross the other way alone
// never do.
func crossing(xs, v []float64) (first, last float64) {
	n := len(xs)
	gap := func(i int) float64 { return v[i] - v[n+i] }
	var rises []float64
	for i := 1; i < n; i++ {
		if before, after := gap(i-1), gap(i); before <= 0 && after > 0 {
			rises = append(rises, xs[i-1]+(xs[i]-xs[i-1])*before/(before-after))
		}
	}
	switch above, ends := gap(0) > 0, gap(n-1) > 0; {
	case len(rises) == 0 && above && ends:
		return math.Inf(-1), math.Inf(-1)
	case len(rises) == 0:
		return math.Inf(1), math.Inf(1)
	case above && !ends:
		return math.Inf(-1), math.Inf(1)
	case above:
		return math.Inf(-1), rises[len(rises)-1]
	case !ends:
		return rises[0], math.Inf(1)
	}
	return rises[0], rises[len(rises)-1]
}
