package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/quantity"
)

// Bounds of the matrix.
const (
	cellsMax = 10_000
	runsMax  = 100_000 // cells times repetitions
)

// Cells expands the matrix of an experiment that Read returned, in the order of
// the file: scenarios, systems, workloads with their sizes and times, threads or
// ratio, think, rate, tool, protocol, connection; the last varies fastest.
func (e *Experiment) Cells() []Cell {
	cells := []Cell{{Iterations: e.Load.Iterations, Warmup: e.Load.Warmup, Ramp: e.Load.Ramp}}
	cells[0].Duration, cells[0].Rotate, cells[0].Settle = e.Load.Duration, e.Load.Rotate, e.Load.Settle
	if e.Load.open() {
		cells[0].Arrivals = cmp.Or(e.Load.Arrivals, ArrivalsConstant)
	}
	cells = cross(cells, e.Scenarios, func(c *Cell, s Scenario) { c.Scenario = s })
	cells = cross(cells, e.Systems, func(c *Cell, s string) { c.System = s })
	cells = cross(cells, e.served(), func(c *Cell, s Cell) {
		c.Workload, c.Size, c.Time, c.Memory = s.Workload, s.Size, s.Time, s.Memory
	})
	cells = cross(cells, or(e.Load.Threads, 1), func(c *Cell, n int) { c.Threads = n })
	cells = cross(cells, or(e.Load.Ratio, ""), split)
	cells = cross(cells, or(e.Load.Think, 0), func(c *Cell, d quantity.Duration) { c.Think = d })
	cells = cross(cells, or(e.Load.Rate, 0), func(c *Cell, f quantity.Frequency) { c.Rate = f })
	cells = cross(cells, or(e.Load.Tool, ToolSkerry), send)
	cells = e.Load.speakAll(cells)
	return cross(cells, or(e.Load.Connection, ConnectionKept), func(c *Cell, kind string) { c.Connection = kind })
}

// send sets the tool of a cell. Skerry's own load has no name in a cell: those
// that were before there were others keep their ID.
func send(c *Cell, tool string) {
	if c.Tool = tool; tool == ToolSkerry {
		c.Tool = ""
	}
}

// speakAll gives every cell each of the protocols, but those of a workload that speaks its own.
func (l Load) speakAll(cells []Cell) (all []Cell) {
	for _, c := range cells {
		kind, _ := workloadKind(c.Workload)
		all = append(all, cross([]Cell{c}, l.protocolsOf(kind), l.speak)...)
	}
	return all
}

// protocolsOf are those by which a kind of workload is asked.
func (l Load) protocolsOf(kind workload) []string {
	if kind.speaks != "" {
		return []string{kind.speaks}
	}
	return or(l.Protocol, ProtocolHTTP1)
}

// speak sets the protocol of a cell and what goes with it. The first of them has
// no name in a cell: those that were before there were others keep their ID.
func (l Load) speak(c *Cell, protocol string) {
	c.Protocol, c.Timeout = protocol, l.timeout()
	switch protocol {
	case ProtocolHTTP1:
		c.Protocol = ""
	case ProtocolUDP:
		c.Timeout = cmp.Or(l.Timeout, TimeoutDatagram)
	}
}

// served lists the workloads at each of their sizes and times.
func (e *Experiment) served() []Cell {
	var all []Cell
	for _, w := range e.Workloads {
		cells := []Cell{{Workload: w.Name, Memory: w.Memory}}
		cells = cross(cells, or(w.Size, 0), func(c *Cell, s quantity.Size) { c.Size = s })
		cells = cross(cells, or(w.Time, 0), func(c *Cell, d quantity.Duration) { c.Time = d })
		all = append(all, cells...)
	}
	return all
}

// cross gives every cell each of the levels.
func cross[T any](cells []Cell, levels []T, set func(*Cell, T)) []Cell {
	all := make([]Cell, 0, len(cells)*len(levels))
	for _, c := range cells {
		for _, level := range levels {
			set(&c, level)
			all = append(all, c)
		}
	}
	return all
}

func or[T any](list List[T], otherwise T) []T {
	if len(list) == 0 {
		return []T{otherwise}
	}
	return list
}

// factor is a list in the file and how many levels it has.
type factor struct {
	path   string
	levels int
}

// matrix bounds the number of cells before any is made.
func (c *checker) matrix() {
	e := c.e
	factors := []factor{
		{"scenarios", len(e.Scenarios)},
		{"systems", len(e.Systems)},
		{"load.threads", len(or(e.Load.Threads, 1))},
		{"load.ratio", len(or(e.Load.Ratio, ""))},
		{"load.think", len(or(e.Load.Think, 0))},
		{"load.rate", len(or(e.Load.Rate, 0))},
		{"load.tool", len(or(e.Load.Tool, ""))},
		{"load.connection", len(or(e.Load.Connection, ""))},
	}
	served, lists := c.served()
	cells := served
	for _, f := range factors {
		cells = times(cells, f.levels)
	}
	largest := slices.MaxFunc(append(factors, lists...), func(a, b factor) int { return cmp.Compare(a.levels, b.levels) })
	switch {
	case cells > cellsMax:
		c.add(largest.path, fmt.Sprintf("shorten the longest list: %s has %d values", largest.path, largest.levels),
			"the matrix has %s cells, the most is %d", count(cells), cellsMax)
	case times(cells, max(0, e.Repetitions)) > runsMax:
		c.add("repetitions", "repeat less, or shorten a list",
			"%d cells, %d times each, are more runs than %d", cells, e.Repetitions, runsMax)
	}
}

// RepetitionsMost is how often each cell may be run.
func (e *Experiment) RepetitionsMost() int { return min(repetitionsMax, runsMax/len(e.Cells())) }

// served counts the workloads at each of their sizes, times and protocols, and names
// the lists.
func (c *checker) served() (levels uint64, lists []factor) {
	lists = append(lists, factor{"workloads", len(c.e.Workloads)}, factor{"load.protocol", len(c.e.Load.Protocol)})
	for i, w := range c.e.Workloads {
		sizes, durations := len(or(w.Size, 0)), len(or(w.Time, 0))
		lists = append(lists,
			factor{fmt.Sprintf("workloads[%d].size", i), sizes}, factor{fmt.Sprintf("workloads[%d].time", i), durations})
		kind, _ := workloadKind(w.Name)
		// A file has room for 10^6 of each at most.
		levels += times(uint64(sizes)*uint64(durations), len(c.e.Load.protocolsOf(kind)))
	}
	return levels, lists
}

// times multiplies, and stays at the largest number where that overflows.
func times(a uint64, b int) uint64 {
	high, low := bits.Mul64(a, uint64(b))
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

func count(n uint64) string {
	if n == math.MaxUint64 {
		return "more than 10^19"
	}
	return fmt.Sprint(n)
}

// ID names the cell: the first 12 hexadecimal digits of the SHA-256 of its JSON
// with sorted keys. Equal cells of any two runs have equal names.
func (c Cell) ID() string {
	sum := sha256.Sum256(canonical(c))
	return hex.EncodeToString(sum[:])[:12]
}

// canonical sorts the keys by a way through a map; numbers keep their digits.
func canonical(c Cell) []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a cell holds nothing that JSON lacks
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	if text, err = json.Marshal(value); err != nil {
		panic(err)
	}
	return text
}

// Speaks is the protocol of the load, by its name: that of an empty Protocol too.
func (c Cell) Speaks() string { return cmp.Or(c.Protocol, ProtocolHTTP1) }

// OneWay reports a cell of timed packets: its threads are talkers, and nothing is
// answered.
func (c Cell) OneWay() bool { return c.Protocol == ProtocolOneWay }

// Dial is how many round trips a new connection takes before its first request:
// that of TCP, and those in which a client and a broker agree.
func (c Cell) Dial() int {
	switch c.Protocol {
	case ProtocolUDP, ProtocolOneWay:
		return 0
	case ProtocolMQTT:
		return 3 // TCP, connect, subscribe
	case ProtocolAMQP:
		return 7 // TCP, start, tune, open, channel, queue, consumer
	}
	return 1
}

// chosen is the level of the cell of the factor load.protocol: none of a workload that
// speaks its own.
func (c Cell) chosen() string {
	if kind, _ := workloadKind(c.Workload); kind.speaks != "" {
		return ""
	}
	return c.Speaks()
}

// SentBy is the tool that sends the requests, by its name: Skerry's own too.
func (c Cell) SentBy() string { return cmp.Or(c.Tool, ToolSkerry) }

// FromPod says that on kubernetes a pod sends the requests: Skerry's load does, all
// other tools are processes of the client's node.
func (c Cell) FromPod() bool { return c.Tool == "" }

// String labels the cell, unlike any other of its matrix:
// "edg10/haproxy-mtls/payload-echo 100KB 1 thread kept".
func (c Cell) String() string {
	parts := []string{c.Scenario.Name + "/" + c.System + "/" + c.Workload}
	if c.Size > 0 {
		parts = append(parts, c.Size.String())
	}
	if kind, _ := workloadKind(c.Workload); kind.time {
		parts = append(parts, c.Time.String())
	}
	if c.Memory > 0 {
		parts = append(parts, c.Memory.String())
	}
	threads := fmt.Sprintf("%d threads", c.Threads)
	switch {
	case c.Ratio != "":
		threads = c.Ratio + " threads"
	case c.Threads == 1:
		threads = "1 thread"
	}
	parts = append(parts, threads)
	if c.Think > 0 {
		parts = append(parts, "think "+c.Think.String())
	}
	if c.Rate > 0 {
		parts = append(parts, c.Rate.String()+" "+c.Arrivals)
	}
	if c.Tool != "" {
		parts = append(parts, "by "+c.Tool)
	}
	if c.Protocol != "" {
		parts = append(parts, c.Protocol)
	}
	return strings.Join(append(parts, c.Connection), " ")
}

// Slot is one repetition of one cell in the order of a run.
type Slot struct {
	// Cell is an index into Cells, Repetition counts from 1.
	Cell, Repetition int
}

// Order interleaves the cells: each repetition is a block that holds every cell once,
// shuffled, so that a drift of the host falls on all cells alike. Those that differ in
// their system or their tool alone stand together, in an order of their own each time:
// they are what is compared most, and a host drifts less in a minute than in a block.
// The same seed gives the same order.
func Order(seed uint64, cells []Cell, repetitions int) []Slot {
	random := rand.New(rand.NewPCG(seed, orderStream))
	order := make([]Slot, 0, len(cells)*repetitions)
	groups := alike(cells)
	for r := range repetitions {
		for _, g := range random.Perm(len(groups)) {
			for _, i := range random.Perm(len(groups[g])) {
				order = append(order, Slot{Cell: groups[g][i], Repetition: r + 1})
			}
		}
	}
	return order
}

// alike groups the indices of cells that differ in their system or their tool alone.
func alike(cells []Cell) (groups [][]int) {
	at := map[string]int{}
	for i, c := range cells {
		c.System, c.Tool = "", ""
		id := c.ID()
		g, known := at[id]
		if !known {
			g = len(groups)
			at[id], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// orderStream keeps the order apart from other uses of an experiment's seed.
const orderStream = 0x6f72646572 // "order"
