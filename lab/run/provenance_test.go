package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/systems"
	"skerry.dev/skerry/test/quiet"
)

const cpuinfo = `processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R)  Processor @ 2.10GHz
flags		: fpu vme hypervisor lahf_lm

processor	: 1
model name	: another
`

func TestProcessor(t *testing.T) {
	for _, c := range []struct {
		name, text, model string
		virtual           bool
	}{
		{"virtual", cpuinfo, "Intel(R) Xeon(R)  Processor @ 2.10GHz", true},
		{"bare", strings.Replace(cpuinfo, "hypervisor ", "", 1), "Intel(R) Xeon(R)  Processor @ 2.10GHz", false},
		{"part of a word", strings.Replace(cpuinfo, "hypervisor", "hypervisors", 1), "Intel(R) Xeon(R)  Processor @ 2.10GHz", false},
		{"arm names no model", "processor\t: 0\nFeatures\t: fp asimd\n", runtime.GOARCH, false},
		{"nothing", "", runtime.GOARCH, false},
	} {
		if model, virtual := processor(c.text); model != c.model || virtual != c.virtual {
			t.Errorf("%s: got %q, %v, want %q, %v", c.name, model, virtual, c.model, c.virtual)
		}
	}
}

func FuzzProcessor(f *testing.F) {
	f.Add(cpuinfo)
	f.Fuzz(func(t *testing.T, text string) {
		if model, _ := processor(text); strings.Contains(model, "\n") || !strings.Contains(text, "model name") && model == "" {
			t.Errorf("%q: model %q", text, model)
		}
	})
}

func TestCommit(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "288a572c"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "288a572c"},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, "288a572c+changes"},
		{[]debug.BuildSetting{{Key: "-trimpath", Value: "true"}}, ""},
	} {
		if got := commit(c.settings); got != c.want {
			t.Errorf("%v: got %q, want %q", c.settings, got, c.want)
		}
	}
}

func TestDescribeMachine(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	for _, c := range []struct {
		name                        string
		tree                        fstest.MapFS
		governor, turbo, smt, clock string
	}{
		{"a guest", fstest.MapFS{}, notExposed, notExposed, notExposed, notExposed},
		{"intel", fstest.MapFS{
			cpu + "cpu0/cpufreq/scaling_governor": file("powersave"), cpu + "cpu1/cpufreq/scaling_governor": file("performance"),
			cpu + "cpu10/cpufreq/scaling_governor": file("performance"), cpu + "intel_pstate/no_turbo": file("1"),
			cpu + "smt/control": file("on"), "sys/devices/system/clocksource/clocksource0/current_clocksource": file("tsc"),
		}, "performance, powersave", "off", "on", "tsc"},
		{"intel with turbo", fstest.MapFS{cpu + "intel_pstate/no_turbo": file("0")}, notExposed, "on", notExposed, notExposed},
		{"boost", fstest.MapFS{cpu + "cpufreq/boost": file("1"), cpu + "smt/control": file("forceoff")}, notExposed, "on", "forceoff", notExposed},
		{"no boost", fstest.MapFS{cpu + "cpufreq/boost": file("0")}, notExposed, "off", notExposed, notExposed},
	} {
		m, err := describeMachine(c.tree, "v1")
		if err != nil || m.Governor != c.governor || m.Turbo != c.turbo || m.SMT != c.smt || m.Clock != c.clock || m.Version != "v1" {
			t.Errorf("%s: got %+v, %v", c.name, m, err)
		}
	}
}

func TestReadSysctls(t *testing.T) {
	tree := fstest.MapFS{"proc/sys/net/ipv4/tcp_rmem": {Data: []byte("4096\t131072\t67108864\n")}}
	got := readSysctls(tree, []string{"net.ipv4.tcp_rmem", "net.core.rmem_max"})
	if want := map[string]string{"net.ipv4.tcp_rmem": "4096 131072 67108864"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChangedPrograms(t *testing.T) {
	a, b, c := Program{Name: "a", SHA256: "1"}, Program{Name: "b", SHA256: "2"}, Program{Name: "c", SHA256: "3"}
	other := Program{Name: "b", Path: "/elsewhere/b", SHA256: "4"}
	moved := Program{Name: "a", Path: "/elsewhere/a", SHA256: "1"}
	if got := changedPrograms([]Program{a, b}, []Program{moved, other, c}); !slices.Equal(got, []Program{other, c}) {
		t.Errorf("got %v", got)
	}
}

func TestProgramAt(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("abc"), 0o755), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	p, err := programAt("x", link)
	// SHA-256 of "abc": FIPS 180-2, appendix B.1.
	want := Program{Name: "x", Path: file, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
	if err != nil || p != want {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
	if _, err := programAt("x", filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Programs of clusters are parts of Kubernetes, whose version is told by itself.
func TestProgramFacts(t *testing.T) {
	r := Record{Machine: Machine{Kernel: "Linux"}, Programs: []Program{
		{Name: "etcd", Path: "/bin/etcd", Version: "v3.6.12", SHA256: "12", Of: kubernetesName},
		{Name: "kubernetes", Path: "/bin/kubernetes", Version: "v1.36.3", SHA256: "34", Of: kubernetesName},
		{Name: "sh", Path: "/bin/sh", SHA256: "56"},
	}}
	facts := r.facts()
	want := []report.Fact{
		{Name: "/bin/etcd", Value: "v3.6.12, SHA-256 12…", Of: "Kubernetes"},
		{Name: "Kubernetes", Value: "v1.36.3", Of: "Kubernetes"},
		{Name: "/bin/kubernetes", Value: "v1.36.3, SHA-256 34…", Of: "Kubernetes"},
		{Name: "/bin/sh", Value: "SHA-256 56…"},
	}
	if got := facts[len(facts)-len(want):]; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestQueuesFact(t *testing.T) {
	before := []host.Queue{{Node: "c1/head", Name: "data", Kind: "noqueue", Dropped: 2}, {Name: "0", Kind: "nfqueue", Dropped: 1}}
	after := []host.Queue{
		{Node: "c1/head", Name: "data", Kind: "noqueue", Dropped: 5}, {Node: "c2/head", Name: "data", Kind: "noqueue"},
		{Name: "0", Kind: "nfqueue", Dropped: 1, Waiting: 4},
	}
	if got, want := queuesFact(before, after), "1 nfqueue, 2 noqueue; 3 packets dropped, 4 waiting at the end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// notes keeps what a user would be told.
type notes struct{ said []string }

func (*notes) Turn(int, int, Turn, time.Duration) {}
func (*notes) Done(Turn, *measure.Gathered)       {}
func (*notes) Ended()                             {}
func (n *notes) Note(text string)                 { n.said = append(n.said, text) }

// realRun carries the example out in a lab of its own, changed in some way.
func realRun(t *testing.T, change func(*Options)) (Options, *notes) {
	t.Helper()
	o, said := options(t, change)
	if err := Run(context.WithoutCancel(t.Context()), o); err != nil {
		t.Fatal(err)
	}
	return o, said
}

// options of a run of the example, changed in some way.
func options(t *testing.T, change func(*Options)) (Options, *notes) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces are made")
	}
	quiet.Timed(t)
	agent := filepath.Join(t.TempDir(), "skerry-agent")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "skerry.dev/skerry/cmd/skerry-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v: %s", err, out)
	}
	stack, err := system.Load(systems.FS, "direct")
	if err != nil {
		t.Fatal(err)
	}
	said := &notes{}
	o := Options{
		Experiment: example(), Stacks: map[string]*system.Stack{"direct": stack}, Agent: agent, Backend: "auto",
		Dir: filepath.Join(t.TempDir(), "run"), Seed: 7, LabName: fmt.Sprintf("test-%d-provenance", os.Getpid()),
		Version: "v1", Command: []string{"skerry", "run"}, Progress: said, Now: time.Now,
	}
	change(&o)
	return o, said
}

// A run records what it ran on, with what, and in which order; one that goes on
// with another program says so.
func TestProvenance(t *testing.T) {
	o, said := realRun(t, func(*Options) {})
	record, err := ReadRecord(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	id := o.Experiment.Cells()[0].ID()
	if slices.Sort(record.Plan); !slices.Equal(record.Plan, []string{id + "/1", id + "/2"}) {
		t.Errorf("plan %q", record.Plan)
	}
	// The node's own, not the machine's.
	if s := record.Sysctls; s["net.ipv4.tcp_rmem"] != "4096 131072 67108864" || s["net.ipv4.tcp_no_metrics_save"] != "1" ||
		s["kernel.sched_rt_runtime_us"] == "" || s["net.core.default_qdisc"] == "" {
		t.Errorf("sysctls %v", s)
	}
	agent, err := programAt("skerry-agent", o.Agent)
	if err != nil || !slices.Contains(record.Programs, agent) {
		t.Errorf("programs %+v lack %+v (%v)", record.Programs, agent, err)
	}
	if record.Course.StealNs < 0 {
		t.Errorf("%d ns stolen", record.Course.StealNs)
	}
	// Both nodes have sent requests or answers over their interface and its port.
	for _, q := range []host.Queue{{Node: "c1/head", Name: "data"}, {Node: "c2/head", Name: "data"}, {Name: "c1n1"}, {Name: "c2n1"}} {
		packets := func(all []host.Queue) (n uint64) {
			for _, seen := range all {
				if seen.Node == q.Node && seen.Name == q.Name {
					n += seen.Packets
				}
			}
			return n
		}
		if before, after := packets(record.Course.Before), packets(record.Course.After); after < before+20 {
			t.Errorf("%s %s: %d packets before, %d after", q.Node, q.Name, before, after)
		}
	}
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"command", "governor", "clock source", "CPU time stolen", "queues", "net.ipv4.tcp_rmem", agent.Path} {
		if !slices.ContainsFunc(input.Provenance.Facts, func(f report.Fact) bool { return f.Name == name && f.Value != "" }) {
			t.Errorf("the page lacks %q: %v", name, input.Provenance.Facts)
		}
	}

	i := slices.Index(record.Programs, agent)
	record.Programs[i].SHA256 = strings.Repeat("0", 64)
	turn := Turn{Cell: o.Experiment.Cells()[0], Repetition: 2}
	s := store{o.Dir}
	if err := errors.Join(os.RemoveAll(s.turnDir(turn)), s.writeRecord(record), Resume(t.Context(), o)); err != nil {
		t.Fatal(err)
	}
	want := "skerry-agent is not the program that the run began with: " + agent.Path
	if !slices.Contains(said.said, want) {
		t.Errorf("notes %q lack %q", said.said, want)
	}
	if record, err = ReadRecord(o.Dir); err != nil || len(record.Resumed) != 1 || !slices.Equal(record.Resumed[0].Changed, []Program{agent}) ||
		len(record.Resumed[0].Course.After) == 0 {
		t.Errorf("resumed: %+v, %v", record.Resumed, err)
	}
}
