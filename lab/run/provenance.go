package run

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
)

// Record is run.json: what was run, and on what.
type Record struct {
	Experiment *experiment.Experiment `json:"experiment"`
	Began      time.Time              `json:"began"`
	// Ended is zero for a run that was not completed.
	Ended time.Time `json:"ended,omitzero"`
	// Seed of the order, of loss and of jitter.
	Seed    uint64   `json:"seed"`
	Command []string `json:"command"`
	Machine Machine  `json:"machine"`
	Links   Emulator `json:"links"`
	// Digests of the plug-ins, by system.
	Digests map[string]string `json:"plugin_digests,omitempty"`
	// Resumed has an entry for each time the run was taken up again; all else is
	// of its first start.
	Resumed []Resumption `json:"resumed,omitempty"`
}

// ReadRecord reads what a run directory says of its run. The error is ErrNoRun
// or ErrDamaged.
func ReadRecord(dir string) (Record, error) { return store{dir}.record() }

// Machine is what the run ran on.
type Machine struct {
	Version     string `json:"skerry"`
	Go          string `json:"go"`
	Kernel      string `json:"kernel"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// Emulator is how links were put into force.
type Emulator struct {
	Backend string `json:"backend"`
	// FIFO says that the emulator's thread had real-time priority.
	FIFO bool `json:"fifo"`
	// Awake says that idle CPUs polled in place of sleeping.
	Awake      bool   `json:"awake"`
	Congestion string `json:"congestion_control"`
}

func describe(ctx context.Context, o Options, lab *host.Lab) (Record, error) {
	status, err := lab.LinkStatus(ctx)
	if err != nil {
		return Record{}, err
	}
	machine, err := describeMachine(o.Version)
	return Record{
		Experiment: o.Experiment, Began: o.Now(), Seed: o.Seed, Command: o.Command, Machine: machine, Digests: o.Digests,
		Links: Emulator{Backend: status.Backend, FIFO: status.FIFO, Awake: status.Awake, Congestion: o.Experiment.Topology.CongestionControl()},
	}, err
}

func describeMachine(version string) (Machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Machine{}, fmt.Errorf("describe kernel: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Machine{}, fmt.Errorf("describe memory: %w", err)
	}
	return Machine{
		Version: version, Go: runtime.Version(), CPU: cpuModel(), Cores: runtime.NumCPU(),
		Kernel:      unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:]),
		MemoryBytes: info.Totalram * uint64(info.Unit),
	}, nil
}

// cpuModel is the processor's name, or its architecture where the kernel gives
// no name.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
