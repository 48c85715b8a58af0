package sim

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"skerry.dev/skerry/proxy/balance"
)

// A Column is a way to choose, as tables have it.
type Column struct {
	Name    string
	Options balance.Options
	// Usage, where it is not 0, is in place of the case's.
	Usage  time.Duration
	Oracle bool
}

// Columns are all the ways: policies, RAP with metrics of Kubernetes' age and of a
// tenth of a second, and the oracle, which is no policy.
func Columns() []Column {
	return []Column{
		{Name: "round-robin", Options: balance.Options{Policy: balance.RoundRobin}},
		{Name: "random", Options: balance.Options{Policy: balance.Random}},
		{Name: "rap", Options: balance.Options{Policy: balance.RAP}},
		{Name: "rap-100ms", Options: balance.Options{Policy: balance.RAP, Cycle: 100 * time.Millisecond}, Usage: 100 * time.Millisecond},
		{Name: "ewma", Options: balance.Options{Policy: balance.EWMA}},
		{Name: "cost", Options: balance.Options{Policy: balance.Cost}},
		{Name: "oracle", Oracle: true},
	}
}

// settled is when all but those that wait for metrics of 15 s have settled.
const settled = 5 * time.Second

// Play plays a case the column's way. Where no metrics are as old as a quarter of a
// minute, a shorter time says as much.
func (c Column) Play(of Case, seed uint64) (Result, error) {
	if c.Usage > 0 {
		of.Reports.Usage = c.Usage
	}
	if c.Options.Policy != balance.RAP || c.Usage > 0 {
		of.Until = settled + (of.Until-of.From)/3
		of.From = settled
	}
	if c.Oracle {
		return of.RunOracle(seed), nil
	}
	return of.Run(c.Options, seed)
}

// A Row is what came of a case, by column: the medians over the seeds.
type Row struct {
	Case    Case
	Results []Result
}

// Table plays each case each column's way with so many seeds, on all cores.
func Table(cases []Case, columns []Column, seeds int) ([]Row, error) {
	type place struct{ row, column, seed int }
	results := make([]Result, len(cases)*len(columns)*seeds)
	errs := make([]error, len(results))
	work := make(chan place)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for p := range work {
				i := (p.row*len(columns)+p.column)*seeds + p.seed
				results[i], errs[i] = columns[p.column].Play(cases[p.row], uint64(p.seed+1)) //nolint:gosec // small
			}
		})
	}
	for row := range cases {
		for column := range columns {
			for seed := range seeds {
				work <- place{row, column, seed}
			}
		}
	}
	close(work)
	all.Wait()
	var rows []Row
	for row := range cases {
		r := Row{Case: cases[row]}
		for column := range columns {
			from := (row*len(columns) + column) * seeds
			r.Results = append(r.Results, middle(results[from:from+seeds]))
		}
		rows = append(rows, r)
	}
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i >= 0 {
		return nil, errs[i]
	}
	return rows, nil
}

// middle has the median of each value.
func middle(of []Result) Result {
	m := Result{
		Goodput: median(of, func(r Result) float64 { return r.Goodput }),
		Failed:  median(of, func(r Result) float64 { return r.Failed }),
		Mean:    median(of, func(r Result) time.Duration { return r.Mean }),
		P99:     median(of, func(r Result) time.Duration { return r.P99 }),
	}
	for i := range of[0].ByNode {
		m.ByNode = append(m.ByNode, median(of, func(r Result) float64 { return r.ByNode[i] }))
	}
	return m
}

func median[T float64 | time.Duration](of []Result, value func(Result) T) T {
	values := make([]T, 0, len(of))
	for _, r := range of {
		values = append(values, value(r))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
