package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/impair"
)

// Bounds of what a file may ask for.
const (
	nameMax        = 63 // a DNS label
	threadsMax     = 1024
	iterationsMax  = 10_000_000
	repetitionsMax = 1000
	rateMax        = 1e6        // requests a second
	arrivalsMax    = 1e7        // of an open loop, on average
	poissonMin     = 20         // on average: else a repetition may have none
	requestsMax    = 20_000_000 // of one repetition: one file of samples
	buffersMax     = 2 << 30    // bytes that the threads of Skerry's load send, all together
	sizeMax        = quantity.Size(64 << 20)
	datagramMax    = quantity.Size(65507) // UDP over IPv4
	oneWayMin      = quantity.Size(24)    // what a timed packet carries
	oneWayMax      = quantity.Size(1472)  // in one frame, over IPv4
	memoryMax      = quantity.Size(4e9)
	timeMax        = quantity.Duration(time.Hour)
	burnMax        = quantity.Duration(time.Minute)
)

// Timeouts of one request where the file sets none.
const (
	TimeoutDefault = quantity.Duration(30 * time.Second)
	// TimeoutDatagram is that of udp, where nothing is sent again.
	TimeoutDatagram = quantity.Duration(time.Second)
)

// Protocol says what the load speaks.
const (
	ProtocolHTTP1 = "http/1.1" // the default
	ProtocolHTTP2 = "http/2"   // without TLS, by prior knowledge
	// ProtocolTCP and ProtocolUDP carry a payload there and back, and nothing else.
	ProtocolTCP = "tcp"
	ProtocolUDP = "udp"
)

// Protocols that message brokers speak, each its own: load.protocol does not name
// them.
const (
	ProtocolMQTT = "mqtt" // 3.1.1, at QoS 1
	ProtocolAMQP = "amqp" // 0-9-1, without acknowledgements
)

// ProtocolOneWay is that of timed packets, each of which goes from a talker to the
// workload listener and no further: load.protocol does not name it.
const ProtocolOneWay = "oneway"

// Protocols lists those that load.protocol may name.
func Protocols() []string {
	return []string{ProtocolHTTP1, ProtocolHTTP2, ProtocolTCP, ProtocolUDP}
}

// Carried lists those that a system may carry.
func Carried() []string { return append(Protocols(), ProtocolOneWay) }

// Connection says when the load opens one.
const (
	// ConnectionKept opens one connection per thread. The default.
	ConnectionKept = "kept"
	// ConnectionNew opens one per request.
	ConnectionNew = "new"
)

// Arrivals says how the requests of an open loop come.
const (
	// ArrivalsConstant is evenly. The default.
	ArrivalsConstant = "constant"
	// ArrivalsPoisson is at random, each independent of the others.
	ArrivalsPoisson = "poisson"
)

// Emulator says on which cores that of the links runs.
const (
	// EmulatorShares lets all run on any core. The default.
	EmulatorShares = "shares"
	// EmulatorApart keeps all else off the core that the emulator runs on.
	EmulatorApart = "apart"
)

// Substrate says what the nodes of a topology are.
const (
	// SubstrateHosts has the workload as a process in its node. The default.
	SubstrateHosts = "hosts"
	// SubstrateKubernetes makes each cluster one of Kubernetes, with the workload as a
	// Deployment.
	SubstrateKubernetes = "kubernetes"
)

// MetricErrors is the metric that is a share of requests; all others are times.
const MetricErrors = "errors"

// Metrics that an objective may bound.
func Metrics() []string {
	return []string{"p50", "p90", "p99", "mean", "max", "first", MetricErrors}
}

// Read reads an experiment file and checks all that can be known without
// starting anything; the errors are *strict.Errors. Whether the systems exist
// is for CheckSystems.
func Read(file string, data []byte) (*Experiment, error) {
	e := new(Experiment)
	doc, err := strict.Decode(file, data, e)
	if err != nil {
		return nil, err
	}
	e.document = *doc
	e.Topology.Dual = e.Kubernetes != nil && e.Kubernetes.Family == FamilyDual
	c := checker{e: e}
	c.label("name", "experiment", e.Name)
	c.substrate()
	c.emulator()
	for _, p := range e.Topology.Check() {
		c.add("topology."+p.Path, p.Hint, "%s", p.Message)
	}
	c.kubernetes()
	c.scenarios()
	c.systems()
	c.workloads()
	c.load()
	c.zeroes()
	if e.Repetitions < 1 || e.Repetitions > repetitionsMax {
		c.add("repetitions", "write 1 to 1000; three are enough to see whether they agree", "%d repetitions are not possible", e.Repetitions)
	}
	c.objectives()
	c.claims()
	c.matrix()
	if err := c.errors.Err(); err != nil {
		return nil, err
	}
	c.compared()
	if err := c.errors.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// emulator wants a way to run it that there is, and on hosts: what runs in pods is moved by
// their control groups to cores of its own.
func (c *checker) emulator() {
	known := []string{EmulatorShares, EmulatorApart}
	switch s := c.e.Emulator; {
	case s != "" && !slices.Contains(known, s):
		c.add("emulator", nearest.Hint(s, known), "the emulator cannot be %.80q", s)
	case s == EmulatorApart && c.e.Substrate == SubstrateKubernetes:
		c.add("emulator", "remove it, or run on hosts", "pods are not kept from the emulator's core")
	}
}

// substrate wants one that there is, and of kubernetes what runs on it.
func (c *checker) substrate() {
	known := []string{SubstrateHosts, SubstrateKubernetes}
	switch s := c.e.Substrate; {
	case s != "" && !slices.Contains(known, s):
		c.add("substrate", nearest.Hint(s, known), "there is no substrate %.80q", s)
	case s == SubstrateKubernetes:
		for i, w := range c.e.Workloads {
			if kind, _ := workloadKind(w.Name); kind.speaks != "" {
				c.add(fmt.Sprintf("workloads[%d].name", i), "leave it out, or run on hosts", "no image is made of %s", w.Name)
			}
		}
	}
}

// Parts are the names of the plug-ins that a system is a stack of, bottom first, each with
// its variant where it has one: lower+upper:variant.
func Parts(system string) []string { return strings.Split(system, "+") }

// Plugin is the name of a part's plug-in, and which of its variants it is; "" is none.
func Plugin(part string) (name, variant string) {
	name, variant, _ = strings.Cut(part, ":")
	return name, variant
}

// CheckSystems checks that every system is made of those known.
func (e *Experiment) CheckSystems(known []string) error {
	c := checker{e: e}
	for i, system := range e.Systems {
		for _, part := range Parts(system) {
			if name, _ := Plugin(part); !slices.Contains(known, name) {
				c.add(fmt.Sprintf("systems[%d]", i), nearest.Hint(name, known), "there is no system %q", name)
			}
		}
	}
	return c.errors.Err()
}

// Mistake is what is wrong with the value at a path of the file, such as "load.tool", and what
// to do.
func (e *Experiment) Mistake(path, hint, message string) *strict.Error {
	return e.document.Errorf(path, hint, "%s", message)
}

// checker collects what is wrong with an experiment, at its place in the file.
type checker struct {
	e      *Experiment
	errors strict.Errors
}

func (c *checker) add(path, hint, format string, args ...any) {
	c.errors.Add(c.e.document.Errorf(path, hint, format, args...))
}

// label checks a name that becomes part of file names and charts.
func (c *checker) label(path, kind, name string) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	if name == "" || len(name) > nameMax || strings.Trim(name, letters+"-") != "" || name[0] == '-' || name[len(name)-1] == '-' {
		c.add(path, "write at most 63 lower-case letters, digits and hyphens, no hyphen first or last",
			"%s name %.80q is not valid", kind, name)
	}
}

// names checks that names are there and unique.
func (c *checker) names(kind string, names, paths []string) {
	if len(names) == 0 {
		c.add(kind+"s", "name at least one", "there is no %s", kind)
	}
	first := map[string]string{}
	for i, name := range names {
		if path, twice := first[name]; twice {
			line, _ := c.e.document.At(path)
			c.add(paths[i], fmt.Sprintf("the other stands on line %d; rename or remove one", line), "two %ss have the name %.80q", kind, name)
			continue
		}
		first[name] = paths[i]
	}
}

func (c *checker) systems() {
	var paths []string
	for i, system := range c.e.Systems {
		paths = append(paths, fmt.Sprintf("systems[%d]", i))
		for _, part := range Parts(system) {
			name, variant := Plugin(part)
			c.label(paths[i], "system", name)
			if strings.Contains(part, ":") {
				c.label(paths[i], "variant", variant)
			}
		}
	}
	c.names("system", c.e.Systems, paths)
}

func (c *checker) scenarios() {
	var names, paths []string
	for i, s := range c.e.Scenarios {
		path := fmt.Sprintf("scenarios[%d]", i)
		names, paths = append(names, s.Name), append(paths, path+".name")
		c.label(path+".name", "scenario", s.Name)
		if s.Unit != "" && s.Unit != impair.UnitPacket && s.Unit != impair.UnitSuperpacket {
			c.add(path+".unit", "write packet or superpacket", "unit %.80q is not known", string(s.Unit))
		}
		c.links(path, s)
		c.timeline(path, s)
	}
	c.names("scenario", names, paths)
}

func (c *checker) objectives() {
	scenarios := make([]string, len(c.e.Scenarios))
	for i, s := range c.e.Scenarios {
		scenarios[i] = s.Name
	}
	workloads := make([]string, len(c.e.Workloads))
	for i, w := range c.e.Workloads {
		workloads[i] = w.Name
	}
	for i, o := range c.e.Objectives {
		path := fmt.Sprintf("objectives[%d]", i)
		if !slices.Contains(Metrics(), o.Metric) {
			c.add(path+".metric", nearest.Hint(o.Metric, Metrics()), "there is no metric %.80q", o.Metric)
		} else if _, _, err := o.Bound(); err != nil {
			message, hint := err.Error(), ""
			if wrong := new(quantity.Error); errors.As(err, &wrong) {
				message, hint = wrong.Message, wrong.Hint
			}
			c.add(path+".below", hint, "%s", message)
		}
		c.selected(path+".systems", "system", o.Systems, c.e.Systems)
		c.selected(path+".scenarios", "scenario", o.Scenarios, scenarios)
		c.selected(path+".workloads", "workload", o.Workloads, workloads)
	}
}

func (c *checker) selected(path, kind string, chosen, known []string) {
	if chosen != nil && len(chosen) == 0 {
		c.add(path, "remove the key to select every "+kind, "no %s is selected", kind)
	}
	for i, name := range chosen {
		if !slices.Contains(known, name) {
			c.add(fmt.Sprintf("%s[%d]", path, i), nearest.Hint(name, known), "this experiment has no %s %.80q", kind, name)
		}
	}
}

// Bound is what the metric must stay below: a share of requests for errors, a
// response time for all others.
func (o Objective) Bound() (response quantity.Duration, share quantity.Fraction, err error) {
	if o.Metric == MetricErrors {
		share, err = quantity.ParseFraction(o.Below)
	} else {
		response, err = quantity.ParseDuration(o.Below)
	}
	if err == nil && response == 0 && share == 0 {
		err = &quantity.Error{
			Kind: quantity.ErrRange, Message: fmt.Sprintf("nothing is below %s", o.Below), Hint: "write a bound above 0",
		}
	}
	return response, share, err
}

// Selects reports whether the objective speaks of the cell.
func (o Objective) Selects(c Cell) bool {
	in := func(list []string, name string) bool { return list == nil || slices.Contains(list, name) }
	return in(o.Systems, c.System) && in(o.Scenarios, c.Scenario.Name) && in(o.Workloads, c.Workload)
}
