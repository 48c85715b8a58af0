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
	var up, down []float64
	for range rounds {
		began := time.Now()
		s, err := b.open(ctx, "cubic")
		if err != nil {
			return err
		}
		up = append(up, float64(time.Since(began)))
		began = time.Now()
		if err := s.Close(); err != nil {
			return err
		}
		down = append(down, float64(time.Since(began)))
	}
	for _, c := range []struct {
		name  string
		times []float64
		bound time.Duration
	}{{"up", up, 1500 * time.Millisecond}, {"down", down, time.Second}} {
		sorted := measure.Sort(c.times)
		b.print(line{
			what:  fmt.Sprintf("two clusters of two nodes %s, n=%d", c.name, rounds),
			seen:  fmt.Sprintf("median %.1f ms, worst %.1f ms", sorted.Median()/1e6, sorted.Max()/1e6),
			bound: "worst <= " + c.bound.String(), pass: sorted.Max() <= float64(c.bound), command: "make show AREA=lab",
		})
	}
	return nil
}
