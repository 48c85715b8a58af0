package run

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/report"
)

// Record is run.json: what was run, and on what.
type Record struct {
	Experiment *experiment.Experiment `json:"experiment"`
	Began      time.Time              `json:"began"`
	// Ended is zero for a run that was not completed.
	Ended time.Time `json:"ended,omitzero"`
	// Seed of the order, of loss and of jitter.
	Seed    uint64   `json:"seed"`
	Command []string `json:"command"`
	Machine Machine  `json:"machine"`
	Links   Emulator `json:"links"`
	// NotRunnable says of cells that were not run, by ID, what they lacked here.
	NotRunnable map[string]string `json:"not_runnable,omitempty"`
	// Digests of the plug-ins, by system.
	Digests map[string]string `json:"plugin_digests,omitempty"`
	// Sysctls that move a figure, as a process in the client's node meets them.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Programs that ran.
	Programs []Program `json:"programs,omitempty"`
	// Recordings that links follow: files of traces and of distributions.
	Recordings []File `json:"recordings,omitempty"`
	// Plan is the order in which repetitions were to run, each as CELL/REPETITION.
	Plan   []string `json:"plan,omitempty"`
	Course Course   `json:"course,omitzero"`
	// Resumed has an entry for each time the run was taken up again; all else is
	// of its first start.
	Resumed []Resumption `json:"resumed,omitempty"`
}

// ReadRecord reads what a run directory says of its run. The error is ErrNoRun
// or ErrDamaged.
func ReadRecord(dir string) (Record, error) { return store{dir}.record() }

// Emulator is how links were put into force.
type Emulator struct {
	Backend string `json:"backend"`
	// FIFO says that the emulator's thread had real-time priority.
	FIFO bool `json:"fifo"`
	// Awake says that idle CPUs polled in place of sleeping.
	Awake      bool   `json:"awake"`
	Congestion string `json:"congestion_control"`
}

// Course is what went on while the lab of one start was up.
type Course struct {
	// begun is the machine's steal time at the beginning.
	begun time.Duration
	// StealNs is the CPU time that the hypervisor gave to others, of all cores; like
	// After it is of a start that reached the last repetition.
	StealNs int64 `json:"steal_ns"`
	// Before the first repetition and After the last: where packets can wait.
	Before []host.Queue `json:"queues_before"`
	After  []host.Queue `json:"queues_after"`
}

// begin looks at a lab that is up.
func (c *Course) begin(lab *host.Lab) (err error) {
	if c.begun, err = host.Steal(); err != nil {
		return err
	}
	c.Before, err = lab.Queues()
	return err
}

// end looks again.
func (c *Course) end(lab *host.Lab) error {
	now, err := host.Steal()
	if err != nil {
		return err
	}
	c.StealNs = int64(now - c.begun)
	c.After, err = lab.Queues()
	return err
}

// course is that of the start under way.
func (r *Record) course() *Course {
	if n := len(r.Resumed); n > 0 {
		return &r.Resumed[n-1].Course
	}
	return &r.Course
}

// describe is the record of a run that begins now.
func (r *runner) describe(ctx context.Context, lab *host.Lab) (Record, error) {
	status, err := lab.LinkStatus(ctx)
	if err != nil {
		return Record{}, err
	}
	record := Record{
		Experiment: r.Experiment, NotRunnable: r.NotRunnable, Began: r.Now(), Seed: r.Seed, Command: r.Command, Digests: r.Digests,
		Links: Emulator{Backend: status.Backend, FIFO: status.FIFO, Awake: status.Awake, Congestion: r.Experiment.Topology.CongestionControl()},
	}
	for _, turn := range r.turns() {
		record.Plan = append(record.Plan, fmt.Sprintf("%s/%d", turn.Cell.ID(), turn.Repetition))
	}
	if record.Machine, err = describeMachine(os.DirFS("/"), r.Version); err != nil {
		return Record{}, err
	}
	if record.Sysctls, err = r.settings(lab); err != nil {
		return Record{}, err
	}
	if record.Recordings, err = recordings(r.Experiment); err != nil {
		return Record{}, err
	}
	if record.Programs, err = r.programs(); err != nil {
		return Record{}, err
	}
	r.begun, err = looked(record.Programs)
	return record, err
}

// digestShown is how many digits of a digest a page shows; run.json has all.
const digestShown = 16

// facts are what else may have moved a figure, as a page lists them.
func (r Record) facts() []report.Fact {
	m := r.Machine
	if m.Kernel == "" { // of a version that recorded none
		return nil
	}
	facts := []report.Fact{
		{Name: "command", Value: strings.Join(r.Command, " "), OfRun: true},
		{Name: "Go", Value: m.Go},
		{Name: "virtual machine", Value: yesOrNo(m.Virtual)},
		{Name: "governor", Value: m.Governor}, {Name: "turbo", Value: m.Turbo}, {Name: "SMT", Value: m.SMT},
		{Name: "clock source", Value: m.Clock},
		{Name: "emulator in real time", Value: yesOrNo(r.Links.FIFO)}, {Name: "CPUs kept awake", Value: yesOrNo(r.Links.Awake)},
	}
	if last := r.course(); len(last.After) > 0 {
		facts = append(facts,
			report.Fact{Name: "CPU time stolen", Value: time.Duration(last.StealNs).String(), OfRun: true},
			report.Fact{Name: "queues", Value: queuesFact(last.Before, last.After), OfRun: true})
	}
	for _, s := range r.Resumed {
		value := s.Began.Format(time.DateTime)
		for _, p := range s.Changed {
			value += ", with another " + p.Name
		}
		facts = append(facts, report.Fact{Name: "resumed", Value: value, OfRun: true})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Sysctls)) {
		value := r.Sysctls[name]
		if name == congestionSysctl {
			value += " (the lab's routes say " + r.Links.Congestion + ")"
		}
		facts = append(facts, report.Fact{Name: name, Value: value})
	}
	for _, p := range r.Programs {
		if p.Of != "" && p.Name == kube.Kubernetes {
			facts = append(facts, report.Fact{Name: p.Of, Value: p.Version, Of: p.Of})
		}
		value := shownDigest(p.SHA256)
		if p.Version != "" {
			value = p.Version + ", " + value
		}
		facts = append(facts, report.Fact{Name: p.Path, Value: value, Of: p.Of})
	}
	for _, f := range r.Recordings {
		facts = append(facts, report.Fact{Name: f.Path, Value: shownDigest(f.SHA256)})
	}
	return facts
}

func shownDigest(sha256 string) string {
	return "SHA-256 " + sha256[:min(digestShown, len(sha256))] + "…"
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// queuesFact counts the kinds of queues at the end, and what they have dropped
// since the beginning. A netem that was set anew has forgotten what it dropped.
func queuesFact(before, after []host.Queue) string {
	kinds := map[string]int{}
	var dropped int64
	var waiting uint64
	for _, q := range before {
		dropped -= int64(q.Dropped)
	}
	for _, q := range after {
		kinds[q.Kind]++
		waiting += q.Waiting
		dropped += int64(q.Dropped)
	}
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text = append(text, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return fmt.Sprintf("%s; %d packets dropped, %d waiting at the end", strings.Join(text, ", "), max(dropped, 0), waiting)
}
