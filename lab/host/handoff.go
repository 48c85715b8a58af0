package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair/userspace"
	"skerry.dev/skerry/lab/topology"
)

// HandOff has a thread of the kernel take what a node sends from its data interface
// (threaded NAPI), as a network card does. Without it whoever sends a packet carries it
// through the WAN, into the emulator's queue and up to the receiver's socket, and the CPU
// time of all that is the sender's: a node with little of it would pay for the lab.
//
// A veth asks no thread for a packet that it might have segmented (veth(4): GRO on one
// end, no TSO on the other), so the node segments what it sends itself. It needs Linux 5.13.
func (l *Lab) HandOff(node topology.Ref) error {
	where, err := locate(&l.Topology, node)
	if err != nil {
		return err
	}
	port := portName(where.cluster, where.node)
	err = inNode(l.Nodes[node], func() error { return setFeatures(DataInterface, false, isTSO) })
	if err == nil {
		err = inNode(l.WAN, func() error { return takeByThread(port) })
	}
	if err != nil {
		return fmt.Errorf("hand over what %s sends to a thread of the kernel, as Linux 5.13 can: %w", node, err)
	}
	return hasten(port)
}

// isTSO tells the features by which an interface takes more of TCP than a packet at once, of which
// newer kernels have more.
func isTSO(feature string) bool {
	return strings.HasPrefix(feature, "tx-tcp") && strings.HasSuffix(feature, "-segmentation")
}

// setFeatures turns features of an interface on or off.
func setFeatures(name string, on bool, which func(feature string) bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	features, err := e.FeatureNames(name)
	if err != nil {
		return fmt.Errorf("features of interface %s: %w", name, err)
	}
	set := map[string]bool{}
	for feature := range features {
		if which(feature) {
			set[feature] = on
		}
	}
	if err := e.Change(name, set); err != nil {
		return fmt.Errorf("features of interface %s: %w", name, err)
	}
	return nil
}

// takeByThread has a thread take what comes to a port.
func takeByThread(port string) error {
	if err := setFeatures(port, true, func(name string) bool { return name == "rx-gro" }); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("/sys/class/net", port, "threaded"), []byte("1"), 0)
}

// hasten gives the threads that take what comes to a port the emulator's priority: who waits
// for them is late. Where threads of the kernel are out of sight, or priorities not
// allowed, they stay as they are.
func hasten(port string) error {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), "napi/"+port+"-") {
			continue // or it has ended
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil {
			err = userspace.MakeFIFO(id, userspace.Priority)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("priority of %s: %w", strings.TrimSpace(string(comm)), err)
		}
	}
	return nil
}
