package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
)

// Tools that send requests, as load.tool names them.
const (
	ToolSkerry = "skerry" // the default
	ToolAB     = "ab"
	ToolHey    = "hey"
	ToolJMeter = "jmeter"
	ToolK6     = "k6"
	ToolWrk    = "wrk"
)

// Tools lists the tools that a load may name.
func Tools() []string {
	return []string{ToolSkerry, ToolAB, ToolHey, ToolJMeter, ToolK6, ToolWrk}
}

// workload is what a kind of workload takes and answers.
type workload struct {
	name               string
	size, time, memory bool
	// echoes has it answer with the request's body; answer counts the bytes of
	// one that is always the same.
	echoes bool
	answer quantity.Size
	// speaks is the protocol that it alone speaks: a message broker's, or that of timed
	// packets; empty for all others, which speak what load.protocol says.
	speaks string
}

func workloadKinds() []workload {
	return []workload{
		{name: "payload-echo", size: true, echoes: true},
		{name: "payload-recv", size: true},
		{name: "static-reply", answer: 1000},
		{name: "hello-world", answer: 13},
		{name: "sleep", time: true},
		{name: "burn", time: true, memory: true},
		{name: "mosquitto", size: true, echoes: true, speaks: ProtocolMQTT},
		{name: "rabbitmq", size: true, echoes: true, speaks: ProtocolAMQP},
		{name: "listener", size: true, speaks: ProtocolOneWay},
	}
}

func workloadKind(name string) (workload, bool) {
	for _, w := range workloadKinds() {
		if w.name == name {
			return w, true
		}
	}
	return workload{}, false
}

// Workloads lists the names that a workload may have.
func Workloads() []string {
	var names []string
	for _, w := range workloadKinds() {
		names = append(names, w.name)
	}
	return names
}

// Broker is the workload that speaks a protocol of message brokers, and whether
// there is one: such a protocol is what load.protocol does not name, and what all
// that carries TCP carries.
func Broker(protocol string) (name string, ok bool) {
	if protocol == ProtocolOneWay {
		return "", false
	}
	return Speaker(protocol)
}

// Speaker is the workload that alone speaks a protocol, and whether there is one.
func Speaker(protocol string) (name string, ok bool) {
	for _, w := range workloadKinds() {
		if w.speaks != "" && w.speaks == protocol {
			return w.name, true
		}
	}
	return "", false
}

// Protocols lists those by which the workloads are asked, each once.
func (e *Experiment) Protocols() []string {
	var all []string
	for _, w := range e.Workloads {
		kind, _ := workloadKind(w.Name)
		for _, p := range e.Load.protocolsOf(kind) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// workloads checks that each has what its kind takes, and nothing else.
func (c *checker) workloads() {
	var names, paths []string
	for i, w := range c.e.Workloads {
		path := fmt.Sprintf("workloads[%d]", i)
		kind, known := workloadKind(w.Name)
		if !known {
			c.add(path+".name", nearest.Hint(w.Name, Workloads()), "there is no workload %.80q", w.Name)
			continue
		}
		names, paths = append(names, w.Name), append(paths, path+".name")
		c.takes(path, w.Name, "size", option{takes: kind.size, needs: true, given: w.Size != nil, example: "1KB, or a list of sizes"})
		c.takes(path, w.Name, "time", option{takes: kind.time, needs: true, given: w.Time != nil, example: "10ms, or a list of times"})
		c.takes(path, w.Name, "memory", option{takes: kind.memory, given: w.Memory != 0})
		least, most := quantity.Size(1), sizeMax
		if kind.speaks == ProtocolOneWay {
			least, most = oneWayMin, oneWayMax
			c.oneWay(w.Name)
		}
		within(c, path+".size", w.Size, least, most)
		longest := timeMax
		if kind.memory { // burn
			longest = burnMax
		}
		within(c, path+".time", w.Time, 0, longest)
		if w.Memory != 0 {
			within(c, path+".memory", []quantity.Size{w.Memory}, 1, memoryMax)
		}
		c.timeout(path, w)
		if kind.speaks != "" {
			c.driven(w.Name)
		}
	}
	if len(names) > 0 || len(c.e.Workloads) == 0 {
		c.names("workload", names, paths)
	}
}

// driven refuses tools, which speak HTTP alone: the matrix crosses each with every
// workload.
func (c *checker) driven(workload string) {
	for i, tool := range c.e.Load.Tool {
		if tool != ToolSkerry && slices.Contains(Tools(), tool) {
			c.add(fmt.Sprintf("load.tool[%d]", i), "leave "+tool+" out, or give "+workload+" an experiment of its own",
				"%s cannot drive %s, only %s can", tool, workload, ToolSkerry)
		}
	}
}

// oneWay wants of the load what talkers do: each sends a packet of its own in every
// cycle, whatever becomes of it.
func (c *checker) oneWay(listener string) {
	l := c.e.Load
	for _, wrong := range []struct {
		is              bool
		at, hint, which string
	}{
		{l.Rate == nil || l.Duration == 0, "load", "add rate: 1000/s and duration: 10s", "without a rate and a duration"},
		{l.Arrivals == ArrivalsPoisson, "load.arrivals", "remove it", "with Poisson arrivals"},
		{l.Ratio != nil, "load.ratio", "write threads", "at several entries"},
		{slices.Contains(l.Connection, ConnectionNew), "load.connection", "remove it", "with a socket for each packet"},
	} {
		if wrong.is {
			c.add(wrong.at, wrong.hint, "%s is not driven %s", listener, wrong.which)
		}
	}
}

// option says whether a kind of workload takes or needs a key, and whether the
// file gives it.
type option struct {
	takes, needs, given bool
	example             string
}

func (c *checker) takes(path, workload, key string, o option) {
	switch {
	case o.given && !o.takes:
		c.add(path+"."+key, "remove it", "%s takes no %s", workload, key)
	case o.takes && o.needs && !o.given:
		c.add(path+".name", fmt.Sprintf("add %s: %s", key, o.example), "%s needs a %s", workload, key)
	}
}

// timeout refuses a workload of which every request would time out.
func (c *checker) timeout(path string, w Workload) {
	limit := c.e.Load.timeout()
	for i, t := range w.Time {
		if t >= limit && t <= timeMax {
			c.add(fmt.Sprintf("%s.time[%d]", path, i), "raise load.timeout above it", "every request takes %s and times out after %s", t, limit)
		}
	}
}

// timeout of all protocols but udp.
func (l Load) timeout() quantity.Duration { return cmp.Or(l.Timeout, TimeoutDefault) }

// load checks the bounds of the load.
func (c *checker) load() {
	l := c.e.Load
	within(c, "load.threads", l.Threads, 1, threadsMax)
	c.entries()
	switch {
	case l.Ratio != nil:
		c.atEntries()
	case l.open():
		c.openLoop()
	default:
		c.closedLoop()
	}
	c.rotation()
	c.settling()
	within(c, "load.warmup", []int{l.Warmup}, 0, iterationsMax)
	within(c, "load.think", l.Think, 0, timeMax)
	within(c, "load.ramp", []quantity.Duration{l.Ramp}, 0, timeMax)
	within(c, "load.timeout", []quantity.Duration{l.timeout()}, quantity.Duration(time.Millisecond), timeMax)
	values(c, "load.tool", l.Tool, func(v string) string {
		if slices.Contains(Tools(), v) {
			return ""
		}
		return nearest.Hint(v, Tools())
	})
	c.protocols()
	c.buffers()
	c.broken()
	values(c, "load.connection", l.Connection, func(v string) string {
		if v == ConnectionKept || v == ConnectionNew {
			return ""
		}
		return "write kept or new"
	})
}

// protocols refuses what a protocol cannot carry: the matrix crosses each with
// every workload.
func (c *checker) protocols() {
	values(c, "load.protocol", c.e.Load.Protocol, func(p string) string {
		if slices.Contains(Protocols(), p) {
			return ""
		}
		return "write http/1.1, http/2, tcp or udp"
	})
	own := func(w Workload) bool {
		kind, _ := workloadKind(w.Name)
		return kind.speaks == ""
	}
	if c.e.Load.Protocol != nil && len(c.e.Workloads) > 0 && !slices.ContainsFunc(c.e.Workloads, own) {
		c.add("load.protocol", "remove it: they speak their own", "no workload is asked by a protocol of the load")
	}
	for i, p := range c.e.Load.Protocol {
		if p != ProtocolTCP && p != ProtocolUDP {
			continue
		}
		for j, w := range c.e.Workloads {
			kind, known := workloadKind(w.Name)
			if kind.speaks != "" {
				continue
			}
			if known && !kind.echoes {
				c.add(fmt.Sprintf("load.protocol[%d]", i), "serve payload-echo alone, or give "+p+" an experiment of its own",
					"%s carries bytes there and back, not the requests of %s", p, w.Name)
			}
			for k, size := range w.Size {
				if p == ProtocolUDP && size > datagramMax && size <= sizeMax {
					c.add(fmt.Sprintf("workloads[%d].size[%d]", j, k), fmt.Sprintf("write at most %s, at most 1472B to stay in one packet", datagramMax),
						"a datagram of %s is not possible", size)
				}
			}
		}
	}
}

// buffers refuses bodies that Skerry's load has no memory for, one for each thread.
func (c *checker) buffers() {
	l := c.e.Load
	if l.Tool != nil && !slices.Contains(l.Tool, ToolSkerry) {
		return
	}
	threads := slices.Max(append([]int{1}, l.Threads...))
	for _, ratio := range l.Ratio {
		each, _ := shares(ratio)
		threads = max(threads, sum(each))
	}
	for i, w := range c.e.Workloads {
		for k, size := range w.Size {
			if threads <= threadsMax && size <= sizeMax && int64(threads)*int64(size) > buffersMax {
				c.add(fmt.Sprintf("workloads[%d].size[%d]", i, k), "lower it or the number of threads",
					"%d threads of %s need more than %s of buffers", threads, size, quantity.Size(buffersMax))
			}
		}
	}
}

// broken wants connections of Skerry's own workloads, where some are to be reset.
func (c *checker) broken() {
	if len(c.e.Topology.Broken) == 0 {
		return
	}
	if slices.Contains(c.e.Load.Protocol, ProtocolUDP) {
		c.add("topology.broken", "leave udp out of load.protocol", "a datagram has no connection that could be reset")
	}
	for _, w := range c.e.Workloads {
		if kind, _ := workloadKind(w.Name); kind.speaks != "" {
			c.add("topology.broken", "give "+w.Name+" an experiment of its own", "%s breaks no connection", w.Name)
		}
	}
}

// open reports a load that names any key of an open loop's own. With a ratio a closed
// one has a duration.
func (l Load) open() bool {
	return l.Ratio == nil && (l.Rate != nil || l.Duration != 0 || l.Arrivals != "")
}

// openLoop checks what an open loop needs, and refuses what only a closed one has.
func (c *checker) openLoop() {
	l := c.e.Load
	for _, key := range []struct {
		name  string
		given bool
	}{{"iterations", l.Iterations != 0}, {"warmup", l.Warmup != 0}, {"think", l.Think != nil}, {"ramp", l.Ramp != 0}} {
		if key.given {
			c.add("load."+key.name, "remove it, or remove rate, arrivals and duration", "an open loop takes no %s", key.name)
		}
	}
	if l.Rate == nil {
		c.add("load", "add rate: 200/s, or a list of rates", "an open loop needs a rate")
	}
	if l.Duration == 0 {
		c.add("load", "add duration: 10s", "an open loop needs a duration")
	}
	if a := l.Arrivals; a != "" && a != ArrivalsConstant && a != ArrivalsPoisson {
		c.add("load.arrivals", "write constant or poisson", "%s is not possible here", show(a))
	}
	within(c, "load.duration", []quantity.Duration{l.Duration}, 0, timeMax)
	values(c, "load.rate", l.Rate, func(f quantity.Frequency) string {
		requests := float64(f) * seconds(l.Duration)
		switch {
		case f <= 0 || f > rateMax:
			return fmt.Sprintf("write a rate above 0/s, up to %v", quantity.Frequency(rateMax))
		case l.Duration > 0 && (requests < 1 || requests > arrivalsMax):
			return fmt.Sprintf("rate times duration is %.3g requests, at least 1 and at most %d fit a repetition", requests, int(arrivalsMax))
		case l.Duration > 0 && l.Arrivals == ArrivalsPoisson && requests < poissonMin:
			return fmt.Sprintf("rate times duration is %.3g requests, of which poisson may draw none: %d are the least", requests, poissonMin)
		}
		return ""
	})
}

func (c *checker) closedLoop() {
	l := c.e.Load
	if l.Iterations == 0 {
		c.add("load", "add iterations: 1000, or rate: 200/s and duration: 10s", "it says neither how many requests nor how often")
	} else {
		within(c, "load.iterations", []int{l.Iterations}, 1, iterationsMax)
	}
	for i, threads := range l.Threads {
		requests := int64(threads) * (int64(l.Iterations) + int64(l.Warmup))
		if threads >= 1 && threads <= threadsMax && requests > requestsMax {
			c.add(fmt.Sprintf("load.threads[%d]", i), "lower threads, iterations or warmup",
				"%d requests in one repetition are more than a file of samples holds: %d", requests, requestsMax)
		}
	}
}

// number is a value that has bounds.
type number interface {
	int | quantity.Size | quantity.Duration
}

// within checks every value of a factor against its bounds. A key that holds one
// value alone is a list of one: its place is that of the key.
func within[T number](c *checker, path string, list []T, least, most T) {
	values(c, path, list, func(v T) string {
		if v < least || v > most {
			return fmt.Sprintf("write %v to %v", least, most)
		}
		return ""
	})
}

// show prints a value as the file has it, text in quotes.
func show(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", s)
	}
	return fmt.Sprint(v)
}

// values checks a factor: some values, each valid (an empty hint) and once.
func values[T comparable](c *checker, path string, list []T, hint func(T) string) {
	if list != nil && len(list) == 0 {
		c.add(path, "write a value, or remove the key", "the list is empty")
	}
	seen := map[T]bool{}
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if h := hint(v); h != "" {
			c.add(at, h, "%s is not possible here", show(v))
		} else if seen[v] {
			c.add(at, "remove it: every value is a level of the matrix", "%s appears twice", show(v))
		}
		seen[v] = true
	}
}
