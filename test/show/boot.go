package main

import (
	"context"
	"fmt"
	"time"

	"skerry.dev/skerry/lab/cluster"
)

// boots has the node of a workload lose its power and boot, and the control plane of
// its cluster crash and start.
func (b *bench) boots(ctx context.Context, s *session, name, workload string) error {
	const bootMost, planeMost = 20 * time.Second, 10 * time.Second
	c, err := cluster.Open(s.Lab, name)
	if err != nil {
		return err
	}
	serves := func(restarts int) func() (bool, error) {
		return func() (bool, error) {
			state, err := c.State(ctx) // the API server may just be starting
			pods := state.Match("default/" + workload)
			return err == nil && len(pods) == 1 && pods[0].Ready && pods[0].Restarts == restarts, nil
		}
	}
	began := time.Now()
	if err := cluster.Reboot(ctx, s.Lab, service); err != nil {
		return err
	}
	booted := time.Since(began)
	back, err := until(ctx, serves(1))
	if err != nil {
		return err
	}
	b.print(line{
		what:  "a node loses its power and boots: its pod is ready again",
		seen:  fmt.Sprintf("after %.1f s, of which %.1f s until its programs are started", (booted + back).Seconds(), booted.Seconds()),
		bound: "<= " + bootMost.String(), pass: booted+back <= bootMost, command: kubernetesCommand,
	})
	f, err := s.Inject(ctx, c.StopPlane())
	if err != nil {
		return err
	}
	began = time.Now()
	if err := cluster.Undo(ctx, s.Lab, f.ID); err != nil {
		return err
	}
	started := time.Since(began)
	if back, err = until(ctx, serves(1)); err != nil {
		return err
	}
	b.print(line{
		what:  "a control plane crashes and starts: nodes and pods as they were",
		seen:  fmt.Sprintf("after %.1f s", (started + back).Seconds()),
		bound: "<= " + planeMost.String(), pass: started+back <= planeMost, command: kubernetesCommand,
	})
	return nil
}
