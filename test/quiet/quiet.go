// Package quiet waits until the machine is its own: on one that a hypervisor shares out,
// others take the cores for minutes, and what is measured then is theirs. Start at Await.
package quiet

import (
	"context"
	"runtime"
	"sync"
	"time"

	"skerry.dev/skerry/lab/host"
)

const (
	// Taken is the share of the cores' time that a hypervisor may take in a probe.
	Taken = 0.02
	probe = 3 * time.Second
	// rest is how long the wait is between probes, waitMax how long it is in all.
	rest    = 15 * time.Second
	waitMax = 5 * time.Minute
)

// Moment is when, and how much the hypervisor had taken of the cores until then.
type Moment struct {
	at     time.Time
	stolen time.Duration
}

// Now is this moment.
func Now() (Moment, error) {
	stolen, err := host.Steal()
	return Moment{time.Now(), stolen}, err
}

// Since is the share of the cores' time that the hypervisor has taken since then, of 1.
func (m Moment) Since(before Moment) float64 {
	return float64(m.stolen-before.stolen) / float64(m.at.Sub(before.at)*time.Duration(runtime.NumCPU()))
}

// Await waits until the machine is its own again, and says whether it is: it gives up
// after a while.
func Await(ctx context.Context) (bool, error) {
	for end := time.Now().Add(waitMax); time.Now().Before(end); {
		if is, err := Is(); is || err != nil {
			return is, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(rest):
		}
	}
	return false, nil
}

// Is says whether the machine is its own now, which shows only under load: of cores that
// rest nothing is taken.
func Is() (bool, error) {
	before, err := Now()
	if err != nil {
		return false, err
	}
	spin(probe)
	after, err := Now()
	return after.Since(before) < Taken, err
}

// spin keeps every core busy for that long.
func spin(lasting time.Duration) {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			end := time.Now().Add(lasting)
			for busy := true; busy; {
				busy = time.Now().Before(end)
			}
		})
	}
	all.Wait()
}
