package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/test/quiet"
)

// showLab measures how long a lab of two clusters with two nodes each takes to
// come up and to go down.
func showLab(ctx context.Context, b *bench) error {
	const rounds = 10
	took, err := upAndDown(ctx, rounds, func() (*session, error) { return b.open(ctx, "cubic") })
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		sorted measure.Sorted
		bound  time.Duration
	}{{"up", took.up, 1500 * time.Millisecond}, {"down", took.down, time.Second}} {
		b.print(line{
			what:  fmt.Sprintf("two clusters of two nodes %s, %s", c.name, took),
			seen:  fmt.Sprintf("median %.1f ms, worst %.1f ms", c.sorted.Median()/1e6, c.sorted.Max()/1e6),
			bound: "worst <= " + c.bound.String(), pass: c.sorted.Max() <= float64(c.bound), command: "make show AREA=lab",
		})
	}
	return nil
}

// ups is how long labs took to come up and to go down, in ns.
type ups struct {
	up, down measure.Sorted
	// robbed counts tries beside those, of whose time the hypervisor took too much.
	robbed int
}

// String is how many there were.
func (u ups) String() string {
	if u.robbed == 0 {
		return fmt.Sprintf("n=%d", len(u.up))
	}
	return fmt.Sprintf("n=%d, and %d tries of which the hypervisor took more than a run allows", len(u.up), u.robbed)
}

// robbedMax is how many tries may go for nothing.
const robbedMax = 20

// upAndDown takes a lab up and down so many times. A try that a run would not count,
// since the hypervisor gave its cores to others, is repeated.
func upAndDown(ctx context.Context, rounds int, open func() (*session, error)) (ups, error) {
	var all ups
	var up, down []float64
	if _, err := quiet.Await(ctx); err != nil {
		return all, err
	}
	for len(up) < rounds {
		before, err := host.Steal()
		if err != nil {
			return all, err
		}
		began := time.Now()
		s, err := open()
		if err != nil {
			return all, err
		}
		isUp := time.Now()
		if err := s.Close(); err != nil {
			return all, err
		}
		isDown := time.Now()
		after, err := host.Steal()
		if err != nil {
			return all, err
		}
		lost := proof.Host{StealNs: int64(after - before)}.Robbed(isDown.Sub(began), runtime.NumCPU())
		if lost != "" && all.robbed < robbedMax {
			all.robbed++
			if _, err := quiet.Await(ctx); err != nil {
				return all, err
			}
			continue
		}
		up, down = append(up, float64(isUp.Sub(began))), append(down, float64(isDown.Sub(isUp)))
	}
	all.up, all.down = measure.Sort(up), measure.Sort(down)
	return all, nil
}

// quietly measures when the machine is its own, and again when it was not to the end.
func quietly[T any](ctx context.Context, take func() (T, error)) (T, error) {
	const tries = 3
	for try := 1; ; try++ {
		if _, err := quiet.Await(ctx); err != nil {
			return *new(T), err
		}
		got, err := take()
		if err != nil || try == tries {
			return got, err
		}
		if still, err := quiet.Is(); still || err != nil {
			return got, err
		}
	}
}
