package run

import (
	"fmt"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/experiment"
)

const (
	// rowBytes is what a request takes in requests.parquet; TestRowBytes measures it.
	rowBytes = 16
	// repetitionBytes is an allowance for the other files of a repetition: logs,
	// certificates, repetition.json and half a block for each.
	repetitionBytes = 64 << 10
	// timedRate is the requests a second that a closed loop by time is taken to make: as
	// many as one core does.
	timedRate = 50_000
	// timedMost is where it ends before its time.
	timedMost = 20_000_000
	// spaceFactor is how many times the estimate must be free.
	spaceFactor = 2
)

// SpaceError says that the file system of the run directory is too small.
type SpaceError struct{ Need, Free uint64 }

// Error tells both figures in bytes.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("the run needs about %s on its disk, and %d times that free; %s are free",
		mebibytes(e.Need), spaceFactor, mebibytes(e.Free))
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// enoughSpace compares what is free with what the turns to do will write.
func (r *runner) enoughSpace() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(r.store.dir, &fs); err != nil {
		return fmt.Errorf("free space of the run directory: %w", err)
	}
	turns := r.turns()
	var need float64
	for _, i := range r.todo() {
		need += turnBytes(turns[i].Cell)
	}
	if free := fs.Bavail * uint64(fs.Bsize); spaceFactor*need > float64(free) {
		return &SpaceError{Need: uint64(need), Free: free}
	}
	return nil
}

// turnBytes is what a repetition of a cell will write, roughly.
func turnBytes(c experiment.Cell) float64 {
	requests := float64(c.Threads) * float64(c.Iterations+c.Warmup)
	switch {
	case c.Timed():
		requests = min(timedRate*(c.Settle+c.Duration).Std().Seconds(), timedMost)
	case c.Rate > 0:
		requests = float64(c.Rate) * c.Duration.Std().Seconds()
	}
	return requests*(rowBytes+outputBytes(c.Tool)) + repetitionBytes
}

// outputBytes is what a load's tool writes of a request, roughly; TestOutputBytes
// looks at what was recorded.
func outputBytes(tool string) float64 {
	switch tool {
	case experiment.ToolAB, experiment.ToolHey:
		return 80
	case experiment.ToolJMeter:
		return 128
	case experiment.ToolK6:
		return 1000
	}
	return 0
}
