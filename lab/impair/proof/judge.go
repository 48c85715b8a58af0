package proof

import (
	"fmt"
	"math"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

const (
	// falseRejection bounds the probability that chance alone rejects any
	// repetition of a run.
	falseRejection = 0.01
	// rateTolerance is how far a rate may be from what was asked for.
	rateTolerance = 0.1
	// lateShareMax is the share of a direction's packets that may leave later than
	// the tolerance of its delay: clearly beyond it the p95 of response times is no
	// longer the link's.
	lateShareMax = 0.05
)

// Tests is how many of Judge's tests on a direction of these stages chance can
// fail.
func Tests(stages ...impair.Impairment) int {
	var n int
	link := newModel(stages)
	if link.varies() {
		n += 2 // a delay before and after
		if link.asked.Rate > 0 {
			n += 2
		}
	}
	for _, p := range []float64{
		link.asked.MeanLoss(), float64(link.asked.Duplicate), float64(link.asked.Corrupt), float64(link.asked.Reorder),
	} {
		if p > 0 && p < 1 {
			n++
		}
	}
	if p := link.asked.MeanLoss(); p < 1 && (p > 0 || link.asked.Corrupt > 0) {
		n += 2 // probes may all be lost
	}
	return n
}

// Alpha is the level of each test in a run with so many of them: by the bound of
// Bonferroni the whole run rejects by chance in at most 1 % of all runs.
func Alpha(tests int) float64 { return falseRejection / float64(max(tests, 1)) }

// Judge says for which reasons the repetition cannot count, each test at the
// level alpha. It looks at all but p.Reasons.
func Judge(p Proof, alpha float64) []string {
	var reasons []string
	for _, d := range p.Directions {
		for _, text := range d.judge(alpha) {
			reasons = append(reasons, d.Label()+": "+text+"; "+p.Host.String())
		}
	}
	return reasons
}

// String is the figures on one line: "steal 0s, longest gap 40µs".
func (h Host) String() string {
	text := "steal " + short(h.StealNs) + ", longest gap " + short(h.GapMaxNs)
	if h.Gaps > 0 {
		text += fmt.Sprintf(" (%d over %s)", h.Gaps, impair.GapBound)
	}
	return text
}

// Disturbed reports whether the machine alone may have moved a figure: a CPU was
// taken away, or the emulator kept from its packets.
func (h Host) Disturbed() bool { return h.StealNs > 0 || h.Gaps > 0 }

// Bounds of what a hypervisor may take of the cores while a repetition runs: on a
// quiet one 2 of 679 repetitions had more. Steal is counted in ticks of 10 ms.
const (
	stolenMost  = 0.05
	stolenLeast = 30 * time.Millisecond
)

// Robbed says why a repetition that took so long on so many cores is better tried
// again: too much of their time was given to others. It is empty for one that is not.
func (h Host) Robbed(took time.Duration, cores int) string {
	of := took * time.Duration(cores)
	if stolen := time.Duration(h.StealNs); stolen > max(stolenLeast, time.Duration(stolenMost*float64(of))) {
		return fmt.Sprintf("the hypervisor gave %.0f%% of the cores to others (at most %.0f%%); %s", 100*float64(stolen)/float64(of), 100*stolenMost, h)
	}
	return ""
}

// short rounds to what a reader compares.
func short(ns int64) string { return time.Duration(ns).Round(time.Microsecond).String() }

// stages of the direction, in the order in which a packet meets them.
func (d Direction) stages() impair.Stages { return impair.Chain(d.Asked, d.Then) }

func (d Direction) judge(alpha float64) []string {
	var reasons []string
	asked := d.stages().Together()
	add := func(text string) {
		if text != "" {
			reasons = append(reasons, text)
		}
	}
	z := math.Sqrt2 * math.Erfinv(1-alpha)
	for _, at := range []struct {
		Probe
		when string
	}{{d.Before, "before the load"}, {d.After, "after the load"}} {
		if at.Sent == 0 {
			continue // no two nodes whose packets take this direction
		}
		if at.Received == 0 {
			if silence(d.stages(), at.Sent) < alpha {
				add(fmt.Sprintf("none of %d probes arrived %s", at.Sent, at.when))
			}
			continue
		}
		add(at.judgeDelay(asked, z, at.when))
		add(at.judgeRate(asked, z, at.when))
	}
	for _, t := range d.tallies() {
		add(t.judge(alpha))
	}
	if d.Reset {
		add("the link was set anew during the load")
	}
	if d.Seen.Missed > 0 {
		add(fmt.Sprintf("%d packets were dropped before the emulator could read them", d.Seen.Missed))
	}
	late := share(d.Seen.Late, d.Seen.Packets)
	// Of few packets a single stall holds up a large share.
	if late > lateShareMax && twoSided(d.Seen.Packets, d.Seen.Late, lateShareMax) < alpha {
		add(fmt.Sprintf("the emulator fell behind: %s of %d packets left more than %s late, the worst %s",
			percent(late), d.Seen.Packets, asked.Tolerance(), short(d.Seen.LateMaxNs)))
	}
	return reasons
}

func (p Probe) judgeDelay(asked impair.Impairment, z float64, when string) string {
	bound := int64(asked.Tolerance()) + int64(z*float64(p.DelaySpreadNs))
	if off := p.DelayNs - int64(asked.Delay); -bound <= off && off <= bound {
		return ""
	}
	return fmt.Sprintf("delay %s %s, asked %s ± %s", short(p.DelayNs), when, asked.Delay, short(bound))
}

func (p Probe) judgeRate(asked impair.Impairment, z float64, when string) string {
	if p.RateExpected == 0 {
		return ""
	}
	bound := rateTolerance + z*p.RateSpread
	// By the time that a byte takes, since that is what jitter spreads.
	if math.Abs(p.RateExpected/p.Rate-1) <= bound {
		return ""
	}
	return fmt.Sprintf("rate %s %s, asked %s and expected %s ± %s", bits(p.Rate), when, asked.Rate, bits(p.RateExpected), percent(bound))
}

func share(k, n uint64) float64 { return float64(k) / float64(max(n, 1)) }

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

// bits rounds to three digits.
func bits(rate float64) string {
	unit := math.Pow10(int(math.Log10(max(rate, 1))) - 2)
	return quantity.Rate(math.Round(rate/unit) * unit).String()
}
