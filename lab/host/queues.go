package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/internal/nfqueue"
	"skerry.dev/skerry/lab/topology"
)

// Queue is a place where packets of the experiment can wait or be dropped: a
// queueing discipline of an interface, or an NFQUEUE of the emulator. Counts go
// back to when it was made; those of a discipline wrap at 2^32 packets.
type Queue struct {
	// Node that it is in; empty for the WAN.
	Node topology.Ref `json:"node,omitempty"`
	// Name of the interface, or the number of the NFQUEUE.
	Name string `json:"name"`
	// Kind of the discipline, as tc(8) calls it, or nfqueue. Of noqueue the counts
	// are those of the interface.
	Kind string `json:"kind"`
	// Packets and Bytes that have come to it; an NFQUEUE counts no bytes.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Waiting packets at this time.
	Waiting uint64 `json:"waiting"`
	Dropped uint64 `json:"dropped"`
	// Overlimits counts how often a discipline held packets back.
	Overlimits uint64 `json:"overlimits,omitempty"`
}

const kindNFQueue = "nfqueue"

// Queues lists those on the data network: of every node, then of the WAN.
func (l *Lab) Queues() ([]Queue, error) {
	var all []Queue
	var ports []string
	for i, c := range l.Topology.Clusters {
		ports = append(ports, bridgeName(i))
		for j, name := range c.Nodes {
			ports = append(ports, portName(i, j))
			ref := topology.Ref(c.Name + "/" + name)
			found, err := disciplines(l.Nodes[ref], ref, DataInterface)
			if err != nil {
				return nil, fmt.Errorf("list queues of node %s: %w", ref, err)
			}
			all = append(all, found...)
		}
	}
	found, err := disciplines(l.WAN, "", ports...)
	if err != nil {
		return nil, fmt.Errorf("list queues of the WAN: %w", err)
	}
	all = append(all, found...)
	err = inNode(l.WAN, func() error {
		// Not /proc/self: its network namespace is that of the main thread.
		text, err := os.ReadFile("/proc/thread-self/net/netfilter/nfnetlink_queue")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a kernel without NFQUEUE
		}
		if err == nil {
			found, err = nfqueues(string(text))
		}
		all = append(all, found...)
		return err
	})
	return all, err
}

// disciplines of interfaces, in their order.
func disciplines(h holder, node topology.Ref, interfaces ...string) ([]Queue, error) {
	handle, err := openHandle(h)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	found, err := handle.QdiscList(nil)
	if err != nil {
		return nil, err
	}
	var all []Queue
	for _, name := range interfaces {
		link, err := handle.LinkByName(name)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if d.Attrs().LinkIndex == link.Attrs().Index {
				all = append(all, queueOf(node, link, d))
			}
		}
	}
	return all, nil
}

func queueOf(node topology.Ref, link netlink.Link, d netlink.Qdisc) Queue {
	q := Queue{Node: node, Name: link.Attrs().Name, Kind: d.Type()}
	if s := link.Attrs().Statistics; q.Kind == "noqueue" && s != nil {
		q.Packets, q.Bytes, q.Dropped = s.TxPackets, s.TxBytes, s.TxDropped
	}
	seen := d.Attrs().Statistics
	if q.Kind == "noqueue" || seen == nil {
		return q
	}
	if b := seen.Basic; b != nil {
		q.Packets, q.Bytes = uint64(b.Packets), b.Bytes
	}
	if w := seen.Queue; w != nil {
		q.Waiting, q.Dropped, q.Overlimits = uint64(w.Qlen), uint64(w.Drops), uint64(w.Overlimits)
	}
	return q
}

// nfqueues are those of the emulator, by the text of the kernel.
func nfqueues(text string) ([]Queue, error) {
	found, err := nfqueue.Parse(text)
	if err != nil {
		return nil, err
	}
	var all []Queue
	for _, q := range found {
		all = append(all, Queue{
			Name: strconv.Itoa(int(q.Number)), Kind: kindNFQueue, Packets: q.Packets, Waiting: q.Waiting, Dropped: q.Dropped,
		})
	}
	return all, nil
}
