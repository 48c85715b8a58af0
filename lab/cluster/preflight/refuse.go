// Package preflight says why clusters cannot be made on this machine, before anything is
// made: too little memory, a network that has their addresses, a kernel without what
// they need. What it tries leaves nothing. Start at Refuse.
package preflight

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"skerry.dev/skerry/lab/cluster/pki"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// What a lab of clusters takes, in bytes, as make show AREA=kubernetes measures it:
// memory of a cluster (its control plane and DNS) and of each node (with its images),
// and on the disk of labs the images, the store of each cluster and the logs of each
// node. clusterWatchers and nodeWatchers are instances of inotify: of an API server, its
// controllers and metrics-server; and of a kubelet, containerd and kube-proxy.
const (
	clusterWatchers, nodeWatchers    = 9, 9
	clusterMemory, nodeMemory        = 300e6, 150e6
	labDisk, clusterDisk, nodeDisk   = 50e6, 160e6, 5e6
	spareNumerator, spareDenominator = 3, 2
)

// earliest is when no clock that is set can be before: certificates that are made by
// another are not valid by the right one.
var earliest = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Refuse says why clusters of a topology cannot be made on this machine: nil where
// nothing speaks against it.
func Refuse(t *topology.Topology, s spec.Spec, now time.Time) error {
	if err := host.RequireRoot(); err != nil {
		return err
	}
	s, err := s.Complete(t)
	if err != nil {
		return err
	}
	m, err := look(host.Root(), now)
	if err != nil {
		return err
	}
	if err := m.refuse(t, s); err != nil {
		return err
	}
	for _, need := range needs(s, t.Dual) {
		if err := need.missing(); err != nil {
			return err
		}
	}
	return nil
}

// Refused says that an error is one of Refuse's about what this machine is or has.
func Refused(err error) bool {
	return is[*ClockError](err) || is[*OverlapError](err) || is[*CapacityError](err) || is[*ShortError](err) ||
		is[*FeatureError](err) || is[*ProgramError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// machine is what of this machine decides, beside its kernel, whether clusters can be
// made on it.
type machine struct {
	// now is what its clock says, built when this program was made.
	now, built time.Time
	// memory that is available, and what is free on the disk of labs, in bytes; dir is
	// their folder.
	memory, disk uint64
	dir          string
	// watchers are how many instances of inotify may be made.
	watchers uint64
	// cores that this process may use, and all the memory that there is, in bytes.
	cores   int
	total   uint64
	subnets []subnet
}

// subnet is one that an interface of the machine has an address in.
type subnet struct {
	link string
	netip.Prefix
}

// refuse says what speaks against clusters on a machine.
func (m machine) refuse(t *topology.Topology, s spec.Spec) error {
	if err := m.late(); err != nil {
		return err
	}
	if err := m.overlap(t, s); err != nil {
		return err
	}
	if err := m.outgrown(s.Capacity); err != nil {
		return err
	}
	for _, w := range m.wants(t) {
		if err := w.short(); err != nil {
			return err
		}
	}
	return nil
}

// late says that the machine's clock is behind.
func (m machine) late() error {
	least := earliest
	if m.built.After(least) {
		least = m.built
	}
	// Clocks of file systems are off by a little.
	if m.now.Before(least.Add(-pki.ClockSlack)) {
		return &ClockError{Now: m.now, Least: least}
	}
	return nil
}

// wants is what clusters of a topology take of a machine, beside what it has.
func (m machine) wants(t *topology.Topology) []ShortError {
	clusters, nodes := uint64(len(t.Clusters)), uint64(len(t.Nodes()))
	all := []ShortError{
		{What: "memory", Need: clusters*clusterMemory + nodes*nodeMemory, Free: m.memory},
		{What: "disk", Where: m.dir, Need: labDisk + clusters*clusterDisk + nodes*nodeDisk, Free: m.disk},
	}
	for i := range all {
		all[i].Need = all[i].Need * spareNumerator / spareDenominator
	}
	all = append(all, ShortError{What: inotify, Need: clusters*clusterWatchers + nodes*nodeWatchers, Free: m.watchers})
	for i := range all {
		w := &all[i]
		w.Clusters, w.Nodes = len(t.Clusters), len(t.Nodes())
	}
	return all
}

// short is the error where there is too little.
func (e ShortError) short() error {
	if e.Need > e.Free {
		return &e
	}
	return nil
}

// overlap says which range of a cluster holds addresses of a network that the machine
// is in.
func (m machine) overlap(t *topology.Topology, s spec.Spec) error {
	for i, cluster := range t.Clusters {
		n := s.Network(t, i)
		for _, r := range []OverlapError{
			{Key: "pods", Range: n.Pods}, {Key: "services", Range: n.Services}, {Key: "pods", Range: n.Pods6}, {Key: "services", Range: n.Services6},
		} {
			if at := slices.IndexFunc(m.subnets, func(other subnet) bool { return other.Overlaps(r.Range) }); at >= 0 {
				r.Cluster, r.Interface, r.Subnet, r.Free = cluster.Name, m.subnets[at].link, m.subnets[at].Prefix, m.free(t, n)
				return &r
			}
		}
	}
	return nil
}

// free is a range that neither the machine nor the lab has, of those for private use
// (RFC 1918); not valid where there is none left to try.
func (m machine) free(t *topology.Topology, n spec.Network) netip.Prefix {
	const first, last, length = 16, 31, 16
	taken := append(t.Networks(), n.Pods, n.Services)
	for _, s := range m.subnets {
		taken = append(taken, s.Prefix)
	}
	for i := byte(first); i <= last; i++ {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, i, 0, 0}), length)
		if !slices.ContainsFunc(taken, p.Overlaps) {
			return p
		}
	}
	return netip.Prefix{}
}

// outgrown says which node is to have more than the machine.
func (m machine) outgrown(all map[topology.Ref]spec.Capacity) error {
	const milli, mebi = 1000, 20
	for _, node := range slices.Sorted(maps.Keys(all)) {
		c := all[node]
		switch {
		case c.MilliCPU > int64(m.cores)*milli:
			return &CapacityError{node, "cpu", fmt.Sprintf("%g cores", float64(c.MilliCPU)/milli), fmt.Sprint(m.cores)}
		case uint64(c.Memory) > m.total:
			return &CapacityError{node, "memory", fmt.Sprintf("%d MiB of memory", c.Memory>>mebi), fmt.Sprintf("%d MiB", m.total>>mebi)}
		}
	}
	return nil
}

// CapacityError says that a node is to have more than the machine.
type CapacityError struct {
	Node topology.Ref
	// Key of the experiment that sets it: cpu or memory.
	Key string
	// Asked is what the node is to have, and Has what the machine has, with units.
	Asked, Has string
}

// Error names the node and both figures.
func (e *CapacityError) Error() string {
	return fmt.Sprintf("node %s is to have %s, and this machine has %s", e.Node, e.Asked, e.Has)
}

// Hint names the key.
func (e *CapacityError) Hint() string {
	return fmt.Sprintf("write at most %s for its %s in kubernetes.nodes, or leave that out for all there is", e.Has, e.Key)
}

// OverlapError says that a cluster would have addresses of a network that this machine
// is in: who works on it would take one for the other.
type OverlapError struct {
	// Cluster whose range it is, and the key of the experiment that sets it.
	Cluster, Key string
	Range        netip.Prefix
	// Interface of the machine, with its network.
	Interface string
	Subnet    netip.Prefix
	// Free is a range to take in its place; there may be none to name.
	Free netip.Prefix
}

// Error names the range, the interface and its network.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("%s of cluster %s, %s, overlap %s, the network of this machine's interface %s", e.Key, e.Cluster, e.Range, e.Subnet, e.Interface)
}

// Hint names the key and a range for it, where that can be chosen.
func (e *OverlapError) Hint() string {
	if e.Range.Addr().Is6() {
		return "take kubernetes.family out of the file: those of IPv6 are the same in every lab"
	}
	if !e.Free.IsValid() {
		return fmt.Sprintf("set kubernetes.%s in the file to a range that is free here", e.Key)
	}
	return fmt.Sprintf("write kubernetes: {%s: %s} in the file, or another range that is free here", e.Key, e.Free)
}

// ShortError says that the machine has too little of something.
type ShortError struct {
	// What it is: memory, disk or inotify. Where the disk is, a folder.
	What, Where     string
	Clusters, Nodes int
	// Need is what is asked for and Free what there is: instances of inotify, or bytes,
	// with a margin.
	Need, Free uint64
}

// Error tells both figures.
func (e *ShortError) Error() string {
	what := e.What
	if e.Where != "" {
		what += " at " + e.Where
	}
	return fmt.Sprintf("Kubernetes on %s of %s wants %s of %s, and %s are free",
		count(e.Nodes, "node"), count(e.Clusters, "cluster"), e.amount(e.Need), what, e.amount(e.Free))
}

// Hint says what helps.
func (e *ShortError) Hint() string {
	if e.What == inotify {
		return "raise it by 'sysctl --write fs.inotify.max_user_instances=1024', or take clusters or nodes out of the topology"
	}
	return "free some, or take clusters or nodes out of the topology"
}

// inotify is what programs watch files by, of which a user has few.
const inotify = "inotify"

func (e *ShortError) amount(n uint64) string {
	if e.What == inotify {
		return fmt.Sprintf("%d instances", n)
	}
	return gigabytes(n)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// ClockError says that the machine's clock is behind.
type ClockError struct{ Now, Least time.Time }

// Error tells both times.
func (e *ClockError) Error() string {
	return fmt.Sprintf("the clock says %s, before %s, which is past: certificates of clusters would not hold",
		e.Now.UTC().Format(time.RFC3339), e.Least.UTC().Format(time.RFC3339))
}

// Hint says what to do.
func (e *ClockError) Hint() string {
	return "set the machine's clock; 'date --set' does, or a client of NTP"
}
