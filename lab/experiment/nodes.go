package experiment

import (
	"fmt"
	"math"
	"slices"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/topology"
)

// NodeCapacity is what a node has for its pods, where that is less than the machine
// has. What is left out is all of the machine's.
type NodeCapacity struct {
	// Node as CLUSTER/NODE.
	Node topology.Ref `yaml:"node" json:"node"`
	// CPU time in cores, in steps of 0.001.
	CPU float64 `yaml:"cpu,omitempty" json:"cpu,omitempty" jsonschema:"exclusiveMinimum=0"`
	// Memory of its pods together, 32 MiB at least.
	Memory quantity.Size `yaml:"memory,omitempty" json:"memory,omitempty"`
}

const (
	milliPerCore = 1000
	memoryLeast  = 32 << 20
	coresMost    = 4096
)

// MilliCPU is CPU in thousandths of a core.
func (n NodeCapacity) MilliCPU() int64 { return int64(math.Round(n.CPU * milliPerCore)) }

// nodeCapacities checks what nodes are given.
func (c *checker) nodeCapacities(nodes []NodeCapacity) {
	var known []string
	for _, n := range c.e.Topology.Nodes() {
		known = append(known, n.String())
	}
	seen := map[topology.Ref]bool{}
	for i, n := range nodes {
		path := fmt.Sprintf("kubernetes.nodes[%d]", i)
		switch {
		case !slices.Contains(known, string(n.Node)):
			c.add(path+".node", nearest.Hint(string(n.Node), known), "there is no node %.80q", n.Node)
		case seen[n.Node]:
			c.add(path+".node", "remove one", "node %q has a capacity already", n.Node)
		case n.CPU == 0 && n.Memory == 0:
			c.add(path, "write for example cpu: 0.5 or memory: 512MiB, or remove it", "node %q has neither cpu nor memory", n.Node)
		case n.CPU > coresMost:
			c.add(path+".cpu", fmt.Sprintf("write %d or less", coresMost), "%g cores are more than a machine has", n.CPU)
		case n.CPU != 0 && n.MilliCPU() < 1:
			c.add(path+".cpu", "write 0.001 or more", "%g cores are too little", n.CPU)
		case n.Memory != 0 && n.Memory < memoryLeast:
			c.add(path+".memory", "write 32MiB or more", "%s is too little for a pod", n.Memory)
		}
		seen[n.Node] = true
	}
}
