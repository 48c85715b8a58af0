package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
)

// Claim is a predicate over cells, which lab/claim judges by their samples. The
// selectors name levels of factors; whatever they leave open, the claim holds
// of each combination of by itself.
type Claim struct {
	// Name of the claim: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"pattern=^[a-z0-9]([a-z0-9-]{0\\,61}[a-z0-9])?$"`
	// Paper says where the claim was made.
	Paper string `yaml:"paper,omitempty" json:"paper,omitempty"`
	// Kind: order (who wins), ratio (by how much), slope (growth over a factor),
	// crossing (where two lines meet) or bound (a limit kept).
	Kind string `yaml:"kind" json:"kind" jsonschema:"enum=order,enum=ratio,enum=slope,enum=crossing,enum=bound"`
	// Metric: p25, p50 (default), p90, p99, mean, iqr-mean, iqr (response time), first
	// (request 1 of a connection, median), rate (answered requests a second),
	// errors (share of requests), share (of answers that took longer than limit) or
	// of-limit (share of the physical limit that p50 reaches).
	Metric string `yaml:"metric,omitempty" json:"metric,omitempty" jsonschema:"enum=p25,enum=p50,enum=p90,enum=p99,enum=mean,enum=iqr-mean,enum=iqr,enum=first,enum=rate,enum=errors,enum=share,enum=of-limit,enum=jitter"`
	// Limit of the response time, for the metric share.
	Limit quantity.Duration `yaml:"limit,omitempty" json:"limit,omitempty"`
	// Where narrows the cells that the claim speaks of.
	Where *Selector `yaml:"where,omitempty" json:"where,omitempty"`
	// Order names the cells of an order, those with the least figure first.
	Order []Selector `yaml:"order,omitempty" json:"order,omitempty" jsonschema:"minItems=2"`
	// Of names the cells whose figure is judged, all by default. In a crossing
	// it is their line that lies below at first and above in the end.
	Of *Selector `yaml:"of,omitempty" json:"of,omitempty"`
	// To names the cells that a ratio divides by, or the other line of a crossing.
	To *Selector `yaml:"to,omitempty" json:"to,omitempty"`
	// Minus names the cells whose figure a slope or a bound subtracts.
	Minus *Selector `yaml:"minus,omitempty" json:"minus,omitempty"`
	// Over is the factor of a slope or a crossing: rtt (round trip of the links
	// that a request crosses), size, time, threads, think or rate.
	Over string `yaml:"over,omitempty" json:"over,omitempty" jsonschema:"enum=rtt,enum=size,enum=time,enum=threads,enum=think,enum=rate"`
	// Steps has the slope from each level to the next in the file lie in the
	// range, in place of the one over all levels: a line that is straight.
	Steps bool `yaml:"steps,omitempty" json:"steps,omitempty"`
	// Never says that the lines of a crossing do not cross.
	Never bool `yaml:"never,omitempty" json:"never,omitempty"`
	// At says for how many of the combinations it must hold: every (default) or some.
	At string `yaml:"at,omitempty" json:"at,omitempty" jsonschema:"enum=every,enum=some"`

	Range `yaml:",inline"`
}

// Range is where a figure must lie: between two values, below one or above one.
type Range struct {
	// Between two values, both included.
	Between []Bound `yaml:"between,omitempty" json:"between,omitempty" jsonschema:"minItems=2,maxItems=2"`
	// Below a value.
	Below Bound `yaml:"below,omitempty" json:"below,omitempty"`
	// Above a value.
	Above Bound `yaml:"above,omitempty" json:"above,omitempty"`
}

// Bound is a value as the file has it; the claim says what it measures. A ratio
// is a number, a slope is in units of Claim.SlopeUnit, a crossing in that of the
// factor, a bound in that of the metric, with a sign where it is a difference.
type Bound string

// UnmarshalText takes any text: Claim.Limits reads it.
func (b *Bound) UnmarshalText(text []byte) error {
	*b = Bound(text)
	return nil
}

// Kinds of claims.
const (
	KindOrder    = "order"
	KindRatio    = "ratio"
	KindSlope    = "slope"
	KindCrossing = "crossing"
	KindBound    = "bound"
)

// Metrics that only a claim has.
const (
	MetricP25 = "p25"
	// MetricJitter is the distance of the quartiles of how much later a timed packet
	// arrives than a cycle after the one before it.
	MetricJitter  = "jitter"
	MetricIQRMean = "iqr-mean"
	MetricIQR     = "iqr"
	MetricRate    = "rate"
	MetricShare   = "share"
	MetricOfLimit = "of-limit"
	metricDefault = "p50"
)

// For how many combinations a claim must hold.
const (
	AtEvery = "every"
	AtSome  = "some"
)

// OverRTT is the factor that is no key of the load or the workload.
const OverRTT = "rtt"

// Kinds lists the kinds of claims.
func Kinds() []string {
	return []string{KindOrder, KindRatio, KindSlope, KindCrossing, KindBound}
}

// ClaimMetrics lists the metrics that a claim may be about: of those of
// objectives, all but max, which no resample can bound.
func ClaimMetrics() []string {
	return []string{MetricP25, "p50", "p90", "p99", "mean", MetricIQRMean, MetricIQR, "first", MetricRate, MetricErrors, MetricShare, MetricOfLimit, MetricJitter}
}

// Overs lists the factors that a claim may run over.
func Overs() []string { return []string{OverRTT, "size", "time", "threads", "think", "rate"} }

// Unit is what a figure is measured in.
type Unit string

// Units of figures: durations are in ns, shares in 0 to 1.
const (
	UnitTime  Unit = "time"
	UnitRate  Unit = "rate"
	UnitShare Unit = "share"
)

// MetricUnit is the unit of a metric's figures.
func MetricUnit(metric string) Unit {
	switch metric {
	case MetricRate:
		return UnitRate
	case MetricErrors, MetricShare, MetricOfLimit:
		return UnitShare
	}
	return UnitTime
}

// MetricOf is the metric of a selector: its own, else the claim's, else p50. A
// nil selector has the claim's.
func (c Claim) MetricOf(s *Selector) string {
	switch {
	case s != nil && s.Metric != "":
		return s.Metric
	case c.Metric != "":
		return c.Metric
	}
	return metricDefault
}

// SlopeUnit says in which units a slope's bounds are: the figure's (ms,
// requests/s, or 1 for shares) per unit of the factor (ms, KB, thread, 1/s).
func (c Claim) SlopeUnit() (figure, factor string) {
	figure = map[Unit]string{UnitTime: "ms", UnitRate: "requests/s", UnitShare: "share"}[MetricUnit(c.MetricOf(c.Of))]
	factor = "ms"
	switch c.Over {
	case "size":
		factor = "KB"
	case "threads":
		factor = "thread"
	case "rate":
		factor = "1/s"
	}
	return figure, factor
}

// Limits of the claim: where its figure must lie, both included, infinite at an
// open end. A ratio and a slope are numbers as the file has them; a crossing is
// in ns, bytes, threads or requests/s; a bound in ns, requests/s or 0 to 1. An
// order has none.
func (c Claim) Limits() (low, high float64, err error) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, b := range []struct {
		text Bound
		into *float64
	}{{c.low(), &low}, {c.high(), &high}} {
		if b.text == "" {
			continue
		}
		if *b.into, err = c.parse(b.text); err != nil {
			return 0, 0, err
		}
	}
	if low > high {
		return 0, 0, &quantity.Error{
			Kind:    quantity.ErrRange,
			Message: fmt.Sprintf("nothing lies between %s and %s", c.low(), c.high()), Hint: "write the lesser value first",
		}
	}
	return low, high, nil
}

func (r Range) low() Bound {
	if len(r.Between) > 0 {
		return r.Between[0]
	}
	return r.Above
}

func (r Range) high() Bound {
	if len(r.Between) > 1 {
		return r.Between[1]
	}
	return r.Below
}

func (c Claim) parse(b Bound) (float64, error) {
	text := string(b)
	switch c.Kind {
	case KindRatio:
		return decimal(text, false)
	case KindSlope:
		return decimal(text, true)
	case KindCrossing:
		return crossingPoint(c.Over, text)
	}
	size, negative := strings.CutPrefix(text, "-")
	if !negative || c.Minus == nil {
		size, negative = text, false
	}
	value, err := measured(MetricUnit(c.MetricOf(c.Of)), size)
	if negative {
		value = -value
	}
	return value, err
}

func measured(unit Unit, text string) (float64, error) {
	switch unit {
	case UnitRate:
		v, err := quantity.ParseFrequency(text)
		return float64(v), err
	case UnitShare:
		v, err := quantity.ParseFraction(text)
		return float64(v), err
	}
	v, err := quantity.ParseDuration(text)
	return float64(v), err
}

func crossingPoint(over, text string) (float64, error) {
	switch over {
	case "size":
		v, err := quantity.ParseSize(text)
		return float64(v), err
	case "rate":
		return measured(UnitRate, text)
	case "threads":
		return decimal(text, false)
	}
	return measured(UnitTime, text)
}

// decimal reads a number such as 0.95, or where it may be negative -0.5.
func decimal(text string, negative bool) (float64, error) {
	digits := text
	if negative {
		digits = strings.TrimPrefix(text, "-")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(digits, "0123456789.") != "" {
		return 0, &quantity.Error{
			Kind: quantity.ErrUnit, Message: fmt.Sprintf("%.60q is not a number", text), Hint: "write for example 1.05",
		}
	}
	return value, nil
}

// X is where a cell lies on the factor of a slope or a crossing, in ns, bytes,
// threads or requests/s. The RTT is not the cell's to know: see Scenario.RTT.
func (c Claim) X(cell Cell, rtt time.Duration) float64 {
	switch c.Over {
	case "size":
		return float64(cell.Size)
	case "time":
		return float64(cell.Time)
	case "threads":
		return float64(cell.Threads)
	case "think":
		return float64(cell.Think)
	case "rate":
		return float64(cell.Rate)
	}
	return float64(rtt)
}

// RTT is the round trip over the links of a hop map, there and back by the
// opposite directions: the sum of their delays.
func (s Scenario) RTT(m HopMap) time.Duration {
	var sum quantity.Duration
	for _, h := range m.Hops {
		sum += h.Link.Together().Delay + s.impairment(h.To, h.From).Together().Delay
	}
	return sum.Std()
}
