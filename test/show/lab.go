package main

import (
	"context"
	"fmt"
	"time"

	"skerry.dev/skerry/lab/measure"
)

// showLab measures how long a lab of two clusters with two nodes each takes to
// come up and to go down.
func showLab(ctx context.Context, b *bench) error {
	const rounds = 10
	up, down, err := upAndDown(rounds, func() (*session, error) { return b.open(ctx, "cubic") })
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		sorted measure.Sorted
		bound  time.Duration
	}{{"up", up, 1500 * time.Millisecond}, {"down", down, time.Second}} {
		b.print(line{
			what:  fmt.Sprintf("two clusters of two nodes %s, n=%d", c.name, rounds),
			seen:  fmt.Sprintf("median %.1f ms, worst %.1f ms", c.sorted.Median()/1e6, c.sorted.Max()/1e6),
			bound: "worst <= " + c.bound.String(), pass: c.sorted.Max() <= float64(c.bound), command: "make show AREA=lab",
		})
	}
	return nil
}

// upAndDown takes a lab up and down so many times, and gives how long each took, in
// ns.
func upAndDown(rounds int, open func() (*session, error)) (up, down measure.Sorted, err error) {
	var ups, downs []float64
	for range rounds {
		began := time.Now()
		s, err := open()
		if err != nil {
			return nil, nil, err
		}
		ups = append(ups, float64(time.Since(began)))
		began = time.Now()
		if err := s.Close(); err != nil {
			return nil, nil, err
		}
		downs = append(downs, float64(time.Since(began)))
	}
	return measure.Sort(ups), measure.Sort(downs), nil
}
