package run

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// Machine is what the run ran on. What the kernel does not tell is "not exposed".
type Machine struct {
	Version string `json:"skerry"`
	// Commit that skerry was built from, with "+changes" where files differed;
	// empty where the build was told nothing of it.
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	// Virtual says that the processor is one of a hypervisor.
	Virtual     bool   `json:"virtual"`
	Cores       int    `json:"cores"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Governor of the clock rate; several are joined by commas.
	Governor string `json:"governor"`
	// Turbo and SMT are on, off, or as the kernel calls it.
	Turbo string `json:"turbo"`
	SMT   string `json:"smt"`
	// Clock is the kernel's source of time.
	Clock string `json:"clock_source"`
}

const notExposed = "not exposed"

// congestionSysctl is for connections that leave by a route without one.
const congestionSysctl = "net.ipv4.tcp_congestion_control"

// sysctls that move a figure of the network, or the emulator's place in time.
var sysctls = []string{
	congestionSysctl,
	"net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_no_metrics_save",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
	"net.ipv4.tcp_tw_reuse",
	"net.ipv4.tcp_mem",
	"net.ipv4.tcp_sack",
	"net.ipv4.tcp_timestamps",
	"net.ipv4.tcp_window_scaling",
	"net.ipv4.tcp_fastopen",
	"net.ipv4.tcp_ecn",
	"net.ipv4.tcp_autocorking",
	"net.ipv4.tcp_limit_output_bytes",
	"net.ipv4.tcp_notsent_lowat",
	"net.ipv4.tcp_moderate_rcvbuf",
	"net.core.rmem_max",
	"net.core.wmem_max",
	"net.core.default_qdisc",
	"net.core.netdev_max_backlog",
	"net.core.busy_poll",
	"kernel.sched_rt_period_us",
	"kernel.sched_rt_runtime_us",
}

// describeMachine looks at a tree that is the machine's own but in tests.
func describeMachine(root fs.FS, version string) (Machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Machine{}, fmt.Errorf("describe kernel: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Machine{}, fmt.Errorf("describe memory: %w", err)
	}
	m := Machine{
		Version: version, Go: runtime.Version(), Cores: runtime.NumCPU(),
		Kernel:      unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:]),
		MemoryBytes: info.Totalram * uint64(info.Unit),
		Governor:    governor(root), Turbo: turbo(root), SMT: line(root, "sys/devices/system/cpu/smt/control"),
		Clock: line(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		m.Commit = commit(build.Settings)
	}
	text, _ := fs.ReadFile(root, "proc/cpuinfo") // without it the architecture is all that is known
	m.CPU, m.Virtual = processor(string(text))
	return m, nil
}

// commit reads what the build noted of the version control.
func commit(settings []debug.BuildSetting) string {
	var revision, changes string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changes
}

// processor reads /proc/cpuinfo: the name of the first one, or the architecture
// where it gives no name, and whether a hypervisor shows itself.
func processor(cpuinfo string) (model string, virtual bool) {
	model = runtime.GOARCH
	for text := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(text, ":")
		switch strings.TrimSpace(key) {
		case "":
			return model, virtual // the next processor follows
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			virtual = slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return model, virtual
}

// line is a file of one line, with single spaces.
func line(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return notExposed
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

func governor(root fs.FS) string {
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") // the pattern is well formed
	var all []string
	for _, f := range files {
		all = append(all, line(root, f))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return notExposed
}

func turbo(root fs.FS) string {
	const cpu = "sys/devices/system/cpu"
	switch {
	case line(root, path.Join(cpu, "intel_pstate/no_turbo")) == "0", line(root, path.Join(cpu, "cpufreq/boost")) == "1":
		return "on"
	case line(root, path.Join(cpu, "intel_pstate/no_turbo")) == "1", line(root, path.Join(cpu, "cpufreq/boost")) == "0":
		return "off"
	}
	return notExposed
}

// settings are the sysctls as a process in the client's node meets them: the
// node's own, and the machine's of those that are of no namespace.
func (r *runner) settings(lab *host.Lab) (map[string]string, error) {
	root := os.DirFS("/")
	values := readSysctls(root, sysctls)
	err := lab.Within(r.Experiment.Topology.Client, func() error {
		for name, value := range readSysctls(root, sysctls) {
			values[name] = value
		}
		return nil
	})
	return values, err
}

// readSysctls reads those that there are.
func readSysctls(root fs.FS, names []string) map[string]string {
	values := map[string]string{}
	for _, name := range names {
		if value := line(root, "proc/sys/"+strings.ReplaceAll(name, ".", "/")); value != notExposed {
			values[name] = value
		}
	}
	return values
}
