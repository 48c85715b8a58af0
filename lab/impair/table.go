package impair

import (
	"errors"
	"math"
	"slices"
)

// tableSteps is how many equal shares of packets a table tells apart: as many as
// the tables of iproute2.
const tableSteps = 4096

// Table is a recorded distribution: for each of 4096 equal shares of all packets,
// in ascending order, how far they lie from the delay in units of jitter. Any
// values may be repeated, none lies between two shares: a packet is as late as one
// that was seen.
type Table struct{ steps [tableSteps]float32 }

// errTable is of values that make no distribution.
var errTable = errors.New("a distribution needs two values or more that differ")

// NewTable makes the table of values that were measured, which it centres on their
// mean and scales to their standard deviation; it returns both. The error is for
// values that do not vary.
func NewTable(values []float64) (t *Table, mean, deviation float64, err error) {
	var n, squares float64
	for _, v := range values { // by the recurrence of Welford, which loses no digits
		n++
		off := v - mean
		mean += off / n
		squares += off * (v - mean)
	}
	deviation = math.Sqrt(squares / max(n, 1))
	if !(deviation > 0) || math.IsInf(deviation, 0) {
		return nil, 0, 0, errTable
	}
	scaled := make([]float64, len(values))
	for i, v := range values {
		scaled[i] = (v - mean) / deviation
	}
	t, err = ScaledTable(scaled)
	return t, mean, deviation, err
}

// ScaledTable makes the table of values that are in units of jitter already.
func ScaledTable(values []float64) (*Table, error) {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || sorted[0] == sorted[len(sorted)-1] {
		return nil, errTable
	}
	t := new(Table)
	for i := range t.steps {
		// The middle of a share is what the share is at the median.
		middle := (float64(i) + 0.5) / tableSteps
		t.steps[i] = float32(sorted[int(middle*float64(len(sorted)))])
	}
	return t, nil
}

// Quantile is the jitter that a share p of all packets does not exceed.
func (t *Table) Quantile(p float64) float64 {
	return float64(t.steps[min(int(p*tableSteps), tableSteps-1)])
}

// Steps are the values, in ascending order.
func (t *Table) Steps() []float32 { return t.steps[:] }
