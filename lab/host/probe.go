package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/impair/netem"
	"skerry.dev/skerry/lab/impair/userspace"
)

// Finding is one thing that a lab needs of its host, or that makes it better.
type Finding struct {
	What string `json:"what"`
	// Here says that the host has it; Needed that no lab runs without it.
	Here   bool `json:"here"`
	Needed bool `json:"needed"`
	// Detail is what was found; Remedy what to do where it is not here.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Probe tries each thing that a lab needs, for real, in namespaces that end
// with it.
func Probe() []Finding {
	findings := append([]Finding{probeRoot(), probeNamespaces(), probeGroups()}, probeLinks()...)
	return append(findings, probeRealTime(), probeAwake(), probeBridge(), probeCores())
}

// probeLinks tries the back ends of links, of which a lab needs one.
func probeLinks() []Finding {
	user := Finding{
		What: "links: userspace", Detail: "NFQUEUE answers",
		Remedy: "modprobe nfnetlink_queue nft_compat xt_NFQUEUE, or a kernel with CONFIG_NETFILTER_NETLINK_QUEUE",
	}
	kernel := Finding{
		What: "links: netem", Detail: "sch_netem answers",
		Remedy: "modprobe sch_netem, or use the userspace back end",
	}
	user.try(userspace.Probe)
	kernel.try(netem.Probe)
	user.Needed, kernel.Needed = !kernel.Here, !user.Here
	return []Finding{user, kernel}
}

// try completes a finding of the network by trying it in a fresh namespace.
func (f *Finding) try(probe func() error) {
	err := thread.InFreshNet(probe)
	f.Here = err == nil
	if f.Here {
		f.Remedy = ""
		return
	}
	f.Detail = err.Error()
	if errors.Is(err, unix.EPERM) {
		f.Remedy = "run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN"
	}
}

func probeRoot() Finding {
	f := Finding{What: "root", Needed: true, Here: os.Geteuid() == 0, Detail: fmt.Sprintf("user id %d", os.Geteuid())}
	if !f.Here {
		f.Remedy = "run as root: network namespaces, control groups and links need it"
	}
	return f
}

func probeNamespaces() Finding {
	f := Finding{What: "namespaces", Needed: true, Here: true, Detail: "network, mount and UTS namespaces can be made"}
	err := thread.Do(func() error {
		return unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS)
	})
	if err != nil {
		f.Here, f.Detail = false, err.Error()
		f.Remedy = "run as root, outside of a container without CAP_SYS_ADMIN"
	}
	return f
}

func probeGroups() Finding {
	f := Finding{What: "control groups", Needed: true}
	err := probing(func(tree cgroup.Tree, group cgroup.Group) error {
		f.Detail = fmt.Sprintf("version %d, CPU time and memory are accounted", tree.Version())
		return group.Make()
	})
	switch {
	case errors.Is(err, ErrNotRoot):
		f.Detail, f.Remedy = err.Error(), "run as root"
	case err != nil:
		f.Detail, f.Remedy = err.Error(), "mount cgroup2 on /sys/fs/cgroup, or run where it is writable"
	default:
		f.Here = true
	}
	return f
}

func probeRealTime() Finding {
	f := Finding{What: "real-time priority", Here: true, Detail: "SCHED_FIFO is allowed"}
	if err := thread.Do(func() error { return userspace.MakeFIFO(0, userspace.Priority) }); err != nil {
		f.Here, f.Detail = false, err.Error()
		f.Remedy = "allow it (CAP_SYS_NICE; rt_runtime of the control group): without it links are late more often"
	}
	return f
}

func probeAwake() Finding {
	f := Finding{What: "awake CPUs", Here: true, Detail: "idle CPUs can be kept from sleeping while a lab is up"}
	if err := emulator.ProbeAwake(); err != nil {
		f.Here, f.Detail = false, err.Error()
		f.Remedy = "a kernel with /dev/cpu_dma_latency, writable: without it links are later by the time that a CPU takes to wake up"
	}
	return f
}

func probeBridge() Finding {
	f := Finding{What: "links inside a cluster", Here: true, Detail: "br_netfilter is there"}
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		f.Here, f.Detail = false, "br_netfilter is not loaded: only links between clusters can be impaired by the userspace back end"
		f.Remedy = "modprobe br_netfilter"
	}
	return f
}

func probeCores() Finding {
	const least = 2
	f := Finding{What: "cores", Here: runtime.NumCPU() >= least, Detail: fmt.Sprintf("%d", runtime.NumCPU())}
	if !f.Here {
		f.Remedy = "the userspace back end takes a core of its own: give the machine two"
	}
	return f
}
