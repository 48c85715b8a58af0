package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A core for the emulator alone. Its thread has a priority of its own and takes the core that
// it last ran on, whoever runs there: a program that is in the way waits, for milliseconds and
// beside a core that has nothing to do, until the kernel moves it.

// ErrCores is wrapped where the machine has no core to spare.
var ErrCores = errors.New("the emulator of links has no core for itself")

// coreApart is the last core that this process may use.
func coreApart() (int, error) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCores, err)
	}
	return lastOf(cores)
}

// lastOf is the last of some cores, where there are others too.
func lastOf(cores unix.CPUSet) (int, error) {
	if n := cores.Count(); n < 2 {
		return 0, fmt.Errorf("%w: it needs 2, this host has %d", ErrCores, n)
	}
	last := 0
	for core := range 64 * len(cores) {
		if cores.IsSet(core) {
			last = core
		}
	}
	return last, nil
}

// keepTo has what this thread starts run on that core alone, or on any other.
func keepTo(apart int, alone bool) error {
	var cores unix.CPUSet
	err := unix.SchedGetaffinity(0, &cores)
	if err == nil {
		if cores.Clear(apart); alone {
			cores.Zero()
			cores.Set(apart)
		}
		err = unix.SchedSetaffinity(0, &cores)
	}
	if err != nil {
		return fmt.Errorf("keep to cores: %w", err)
	}
	return nil
}
