package run

import (
	"slices"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

// called are the addresses of the entries that a cell's threads call, each once; of a
// cell without a ratio the first.
func called(c experiment.Cell, addresses []string) (all []string) {
	each := c.AtEntries()
	if each == nil {
		return addresses[:1]
	}
	for i, address := range addresses {
		if i < len(each) && (each[i] > 0 || c.Rotate > 0) && !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// resetting are the addresses of the entries whose own replica is broken.
func resetting(t topology.Topology, addresses []string) (all []string) {
	for i, entry := range t.Entries {
		if i < len(addresses) && slices.Contains(t.Broken, entry) {
			all = append(all, addresses[i])
		}
	}
	return all
}

// entriesOf a cell, with nothing answered yet; none of a cell without a ratio, nor of one
// whose threads go from entry to entry.
func entriesOf(c experiment.Cell, nodes []topology.Ref) (all []report.Entry) {
	if c.Rotate > 0 {
		return nil
	}
	for i, threads := range c.AtEntries() {
		if i < len(nodes) {
			all = append(all, report.Entry{Node: nodes[i], Threads: threads})
		}
	}
	return all
}

// atEntries adds what each entry has of the answered requests a second of a repetition,
// by the threads of the requests, which are numbered through the entries in order.
func (c *collection) atEntries(requests []sample.Request, rate float64) {
	var entryOf []int
	for i, e := range c.Entries {
		entryOf = append(entryOf, slices.Repeat([]int{i}, e.Threads)...)
	}
	if len(entryOf) == 0 {
		return
	}
	answered, all := make([]float64, len(c.Entries)), 0.0
	for _, q := range requests {
		if !q.Warmup && q.Error == "" && q.Thread >= 0 && int(q.Thread) < len(entryOf) {
			answered[entryOf[q.Thread]]++
			all++
		}
	}
	for i, n := range answered {
		c.Entries[i].Rate += rate * n / max(all, 1)
	}
}
