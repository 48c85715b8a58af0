package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
)

const small = `name: small
topology: {clusters: [{name: c1, nodes: [n]}, {name: c2, nodes: [n]}], service: c1/n, client: c2/n}
scenarios: [{name: near, links: [{from: c1, to: c2, delay: 1ms}]}]
systems: [direct, spinning]
workloads: [{name: hello-world}]
load: {iterations: 10}
repetitions: 1
`

// plugins is a folder of three systems: one takes cores and lacks a program, one asks of the
// kernel what none has.
func plugins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, more := range map[string]string{
		"direct":   "hosts:\n",
		"spinning": "needs: [{program: skerry-nonesuch, package: nonesuch}]\nhosts:\n  busyLoops: 1000\n",
		"timed":    "qdiscs: [nonesuch]\nhosts:\n",
	} {
		text := "name: " + name + "\nkind: interconnect\nsummary: for tests\n" + more +
			"  route: [client, service]\n  address: \"{{.Service.IP}}:{{.Service.Port}}\"\n"
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "system.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A file is read with its systems: their way, their digest, what they lack and whether
// the machine has the cores.
func TestParse(t *testing.T) {
	s, err := source.Parse("small.yaml", []byte(small), plugins(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"direct", "spinning"} {
		if s.Stacks[name] == nil || s.Digests[name] == "" || len(s.Paths[name]) != 2 {
			t.Errorf("of %s: %v, digest %q, path %v", name, s.Stacks[name], s.Digests[name], s.Paths[name])
		}
	}
	if lacks := s.Lacks(); len(lacks) != 1 || !strings.Contains(lacks[0].Error(), "skerry-nonesuch") {
		t.Errorf("it lacks %v", lacks)
	}
	lacks, err := s.NotRunnable(2)
	if err != nil || len(lacks) != 1 {
		t.Errorf("on two cores %v cannot run, %v", lacks, err)
	}
	if _, err := s.NotRunnable(0); !errors.Is(err, experiment.ErrNotRunnable) {
		t.Errorf("on no core: got %v", err)
	}
	if programs, err := s.ClusterPrograms(t.Context(), gobuild.Builder{}, time.Now()); err != nil || programs != nil {
		t.Errorf("on hosts it has programs of clusters: %v, %v", programs, err)
	}
}

// Cells that the kernel cannot carry are not run, and the others are.
func TestNotRunnableByTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a queueing discipline is tried in a network namespace")
	}
	for _, c := range []struct {
		systems string
		all     bool
	}{{"[direct, timed]", false}, {"[timed]", true}} {
		s, err := source.Parse("small.yaml", []byte(strings.Replace(small, "[direct, spinning]", c.systems, 1)), plugins(t))
		if err != nil {
			t.Fatal(err)
		}
		lacks, err := s.NotRunnable(2)
		if _, all := errors.AsType[*system.QdiscError](err); len(lacks) != 1 || all != c.all {
			t.Errorf("of %s %v cannot run, %v", c.systems, lacks, err)
		}
		if all := s.Lacks(); len(all) != 1 || !strings.Contains(all[0].Error(), "kernel lacks: nonesuch") {
			t.Errorf("%s lacks %v", c.systems, all)
		}
	}
}

// What is no experiment file is a wrong command line, in words that name it.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 2<<20); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "there is no file ",
		dir:                             " is a folder",
		"/dev/null":                     " is not an experiment file",
		large:                           " is not an experiment file",
	} {
		_, err := source.Read(file, "")
		if _, usage := errors.AsType[console.UsageError](err); !usage || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v", file, err)
		}
	}
	if _, err := source.SystemTree(dir); err == nil || !strings.Contains(err.Error(), "holds no system") {
		t.Errorf("a folder without systems: got %v", err)
	}
}

// Whatever a file says, it is an experiment whose systems are all there, or a wrong
// file.
func FuzzParse(f *testing.F) {
	f.Add(strings.Replace(small, ", spinning", ", nebula+haproxy-mtls", 1))
	f.Add(strings.Replace(small, "delay: 1ms", "trace: none.mahi", 1))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := source.Parse("f", []byte(text), "")
		if _, usage := errors.AsType[console.UsageError](err); err != nil && !usage {
			t.Errorf("got %v", err)
		}
		if err == nil && (len(s.Stacks) == 0 || len(s.Stacks) != len(s.Paths)) {
			t.Errorf("of %v there are %v", s.Systems, s.Stacks)
		}
	})
}
