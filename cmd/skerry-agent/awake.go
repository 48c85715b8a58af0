package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// awakeCommand keeps every core it may use from sleeping until its input ends: it computes
// whenever nobody else wants to.
func awakeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "awake",
		Short:  "Keep cores from sleeping, with time that nobody else wants",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // who has started it is gone
				cancel()
			}()
			return awake(ctx)
		},
	}
}

func awake(ctx context.Context) error {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return fmt.Errorf("which cores there are: %w", err)
	}
	runtime.GOMAXPROCS(cores.Count() + 1) // one sees when it is to end
	var spinning sync.WaitGroup
	failed := make(chan error, cores.Count())
	for core, left := 0, cores.Count(); left > 0; core++ {
		if !cores.IsSet(core) {
			continue
		}
		left--
		spinning.Go(func() { failed <- spin(ctx, core) })
	}
	spinning.Wait()
	return <-failed
}

// spin computes on a core until the context ends, as long as nobody else wants it
// (SCHED_IDLE, sched(7)). Reading the clock leaves more of a core to its sibling than
// arithmetic does.
func spin(ctx context.Context, core int) error {
	runtime.LockOSThread()
	var own unix.CPUSet
	own.Set(core)
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		return fmt.Errorf("keep core %d awake: %w", core, err)
	}
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(0, &idle, 0); err != nil {
		return fmt.Errorf("keep core %d awake: %w", core, err)
	}
	const turn = time.Millisecond
	for ctx.Err() == nil {
		end := time.Now().Add(turn)
		for busy := true; busy; {
			busy = time.Now().Before(end)
		}
	}
	return nil
}
