package measure

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is how many times a figure is drawn. The ends of a 95 % interval
// are then the 51st values from either side.
const resamples = 2000

// Chance is what resamples are drawn by. What makes all cells of a repetition slow or
// fast, as the speed of a machine that others use, is no difference between cells: those
// that a run took by turns, one repetition of each after the other, are drawn by Turns
// of the same seed and so by the same repetitions, if they have as many. Their contrast
// then rests on how they differ within each, as in a test of pairs. Where they have
// nothing in common it is as right: any pairs will do that do not look at the values.
//
// So often, in per cent, does the interval of the quotient of two means hold the truth
// (4000 trials), where each value differs by 2 % of its own and all of a repetition by σ
// together; in brackets, its width in per cent of that of cells that are drawn apart:
//
//	repetitions   3          5         10
//	σ = 0         95 (106)   95 (99)   95 (99)
//	σ = 5 %       95 (38)    95 (37)   94 (37)
//	σ = 20 %      95 (10)    95 (10)   94 (10)
type Chance struct {
	// Turns draws which repetitions a resample holds, Values what of them.
	Turns, Values *rand.Rand
}

// Alone draws a cell that has nothing in common with others.
func Alone(rng *rand.Rand) Chance { return Chance{rng, rng} }

// Drawn is a figure of one cell with its resamples: what Contrast compares
// cells by. A cell is resampled once, however many contrasts it enters.
type Drawn struct {
	// Value of the figure, NaN where there were no values.
	Value float64
	// Draws are the figures of the resamples. Contrast changes none of them.
	Draws []float64
	// Positive says that the figure is above 0 whatever is drawn.
	Positive bool
	// Least and Most are what the figure could be at all.
	Least, Most float64
	// N values stand behind it, in so many Repetitions. Needed is how many it takes before
	// it has an upper end, 0 where it has one.
	N, Repetitions, Needed int
}

// DrawQuantile resamples the p-quantile as Quantile does. That of a tail may lie above
// every value where these are few, and no resample does: it has no upper end then.
func (r *Repetitions) DrawQuantile(p float64, by Chance) Drawn {
	d := r.draw(by, func(n node) float64 { return n.quantile(p) })
	if needed := tailNeeds(p); d.N > 0 && d.N < needed {
		d.Needed = needed
		d.endless()
	}
	return d
}

// tailNeeds is how many values it takes for one to lie above the p-quantile with the
// confidence of an interval's upper end, pⁿ ≤ 2.5 %: 368 for p99, 36 for p90. It is 0 of
// the median and below, where the spread of repetitions is what matters.
func tailNeeds(p float64) int {
	if p <= 0.5 {
		return 0
	}
	return int(math.Ceil(math.Log((1-confidence)/2) / math.Log(p)))
}

// endless makes the largest draws infinite, twice as many as lie beyond an interval.
func (d *Drawn) endless() {
	order := make([]int, len(d.Draws))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(d.Draws[i], d.Draws[j]) })
	beyond := int((1 - confidence) * float64(len(order)))
	for _, i := range order[len(order)-beyond:] {
		d.Draws[i] = math.Inf(1)
	}
}

// Under divides a value by the figure: a least time by one that was taken.
func (d Drawn) Under(value float64) Drawn {
	if value <= 0 {
		return Drawn{Value: math.NaN()}
	}
	draws := make([]float64, len(d.Draws))
	for i, x := range d.Draws {
		draws[i] = value / x
	}
	d.Value, d.Draws, d.Least, d.Most = value/d.Value, draws, 0, math.Inf(1)
	return d
}

// DrawIQR resamples the distance of the quartiles, from two resamples of the
// same repetitions' values: a little wider than from one.
func (r *Repetitions) DrawIQR(by Chance) Drawn {
	d := r.draw(by, func(n node) float64 { return n.quantile(0.75) - n.quantile(0.25) })
	d.Positive, d.Least = false, 0 // values may tie
	return d
}

// DrawIQRMean resamples Sorted.IQRMean. It takes a further 16 bytes for each
// value while it runs.
func (r *Repetitions) DrawIQRMean(by Chance) Drawn {
	if r.Len() == 0 {
		return Drawn{Value: math.NaN()}
	}
	sums := newMoments(r)
	return r.draw(by, func(n node) float64 {
		if n.rng == nil {
			return r.pooled.IQRMean()
		}
		return n.iqrMean(sums)
	})
}

// Means is the mean of each repetition.
func (r *Repetitions) Means() []float64 {
	means := make([]float64, r.Len())
	for i := range means {
		means[i] = r.sorted[i].Mean()
	}
	return means
}

// HitsOver counts, for each repetition, the values above a limit and all.
func (r *Repetitions) HitsOver(limit float64) (hits, of []int) {
	for _, values := range r.sorted {
		atMost, _ := slices.BinarySearch(values, math.Nextafter(limit, math.Inf(1)))
		hits, of = append(hits, len(values)-atMost), append(of, len(values))
	}
	return hits, of
}

func (r *Repetitions) draw(by Chance, figure func(node) float64) Drawn {
	if r.Len() == 0 {
		return Drawn{Value: math.NaN()}
	}
	d := drawn(resamples, r.Len(), func(from Chance) float64 { return figure(r.node(from)) }, by)
	d.N = len(r.pooled)
	return d.above(r.pooled[0])
}

// above tells of what the least value says: where none is below 0, as of times and rates,
// the figure is not, and a 0 among them makes no resample negative when it is pushed.
func (d Drawn) above(least float64) Drawn {
	d.Positive = least > 0
	if least >= 0 {
		d.Least = 0
	}
	return d
}

// DrawMean resamples the mean of a figure that each repetition has one of, by
// drawing repetitions. n values stand behind them.
func DrawMean(figures []float64, n int, by Chance) Drawn {
	if len(figures) == 0 {
		return Drawn{Value: math.NaN()}
	}
	d := drawn(resamples, len(figures), func(from Chance) float64 {
		if from == (Chance{}) {
			return Sorted(figures).Mean()
		}
		var sum float64
		for range figures {
			sum += figures[from.Turns.IntN(len(figures))]
		}
		return sum / float64(len(figures))
	}, by)
	d.N = n
	return d.above(slices.Min(figures))
}

// DrawShare resamples the share of hits: repetitions, then for each the hits
// among its values with the probability (hits + ½) / (of + 1) of Krichevsky and
// Trofimov, The Performance of Universal Encoding (1981), so that a repetition
// without a hit does not say that there can be none. What has been seen is not
// impossible: with a hit the share stays above 0, with a miss below 1.
func DrawShare(hits, of []int, by Chance) Drawn {
	var hit, all int
	for i := range of {
		hit, all = hit+hits[i], all+of[i]
	}
	if all == 0 {
		return Drawn{Value: math.NaN()}
	}
	d := drawn(resamples, len(of), func(from Chance) float64 {
		if from == (Chance{}) {
			return float64(hit) / float64(all)
		}
		drawnHits, drawnOf := 0, 0
		for range of {
			i := from.Turns.IntN(len(of))
			drawnOf += of[i]
			drawnHits += binomial(of[i], (float64(hits[i])+0.5)/float64(of[i]+1), from.Values)
		}
		return float64(drawnHits) / float64(max(drawnOf, 1))
	}, by)
	d.N, d.Least, d.Most = all, 0, 1
	const trace = 1e-3 // of one value
	if hit > 0 {
		d.Least = trace / float64(all)
	}
	if hit < all {
		d.Most = 1 - trace/float64(all)
	}
	return d
}

// drawn makes a figure of the values as they are, from no Chance, and of so many
// resamples.
func drawn(draws, repetitions int, figure func(from Chance) float64, by Chance) Drawn {
	d := Drawn{
		Value: figure(Chance{}), Draws: make([]float64, draws),
		Least: math.Inf(-1), Most: math.Inf(1), Repetitions: repetitions,
	}
	for i := range d.Draws {
		d.Draws[i] = figure(by)
	}
	return d
}
