// Package kill_test ends 'skerry run' in the worst ways and holds that the
// machine is afterwards as it was before. It starts the built program as a user
// does; lab/host and lab/run have the tests of their parts. Start at TestKilled.
package kill_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/internal/programs"
)

const (
	// phaseTime bounds the wait for a phase of a run, and runTime a whole one.
	phaseTime = 20 * time.Second
	runTime   = 60 * time.Second
	kills     = 10
)

// experimentText has a cell whose load lasts, in a lab with a link that does
// something.
const experimentText = `name: kill
topology:
  clusters:
    - {name: c1, nodes: [head, worker]}
    - {name: c2, nodes: [head, worker]}
  service: c1/worker
  client: c2/worker
scenarios:
  - {name: near, links: [{between: [c1, c2], delay: 1ms}]}
systems: [stubborn]
workloads:
  - {name: sleep, time: 5ms}
load: {iterations: %d}
repetitions: %d
`

// systemText has a step that lasts, and a daemon with a grandchild that neither
// a hangup nor SIGTERM ends.
const systemText = `name: stubborn
kind: interconnect
summary: stays where it is
hosts:
  route: [client, service]
  prepare:
    - {at: lab, run: sleep 0.1}
  start:
    - at: importer
      run: trap '' HUP INT TERM; (trap '' HUP INT TERM; exec setsid sleep 1000) & sleep 1000
      daemon: stubborn
  address: "{{.Service.IP}}:{{.Service.Port}}"
`

var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { bin = dir }))
}

// bench is a folder with the experiment and the system, and what its runs are
// known by.
type bench struct {
	t    *testing.T
	dir  string
	mark string
	// before is what was there before the first run.
	before inventory
	mu     sync.Mutex
	labs   []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: labs are made")
	}
	b := &bench{t: t, dir: t.TempDir(), mark: fmt.Sprintf("SKERRY_TEST_MARK=%016x", rand.Uint64())}
	if err := os.MkdirAll(filepath.Join(b.dir, "systems/stubborn"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("systems/stubborn/system.yaml", systemText)
	b.write("short.yaml", fmt.Sprintf(experimentText, 15, 2))
	b.write("long.yaml", fmt.Sprintf(experimentText, 10, 60))
	// Runs clean: what others have left must go before the list is taken.
	b.must("doctor", "--clean")
	b.before = take(t, b.mark, nil)
	t.Cleanup(func() { b.must("doctor", "--clean") })
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// must runs skerry to its good end and returns what it printed.
func (b *bench) must(args ...string) string {
	b.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "skerry"), args...)
	cmd.Dir, cmd.Stderr = b.dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("skerry %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// session is a 'skerry run' under way.
type session struct {
	t    *testing.T
	cmd  *exec.Cmd
	lab  string
	out  string
	done chan error

	mu   sync.Mutex
	said []string
}

// start starts a run in a process group of its own, as a terminal does.
func (b *bench) start(file string) *session {
	b.t.Helper()
	out := filepath.Join(b.dir, fmt.Sprintf("out%d", len(b.labs)))
	return b.session(out, "run", file, "--systems", "systems", "--out", out)
}

// resume goes on with a run as start starts one.
func (b *bench) resume(dir string) *session {
	b.t.Helper()
	return b.session(dir, "run", "--resume", dir, "--systems", "systems")
}

func (b *bench) session(out string, args ...string) *session {
	b.t.Helper()
	b.mu.Lock()
	s := &session{t: b.t, out: out, done: make(chan error, 1)}
	s.cmd = exec.Command(filepath.Join(bin, "skerry"), args...)
	s.cmd.Dir, s.cmd.Env = b.dir, append(os.Environ(), b.mark)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	s.lab = fmt.Sprintf("run-%d", s.cmd.Process.Pid)
	b.labs = append(b.labs, s.lab)
	b.mu.Unlock()
	b.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			s.said = append(s.said, lines.Text())
			s.mu.Unlock()
		}
		s.done <- s.cmd.Wait()
	}()
	return s
}

// lines is what the run has said on stderr so far.
func (s *session) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

// end waits for the run's end and returns its exit status, -1 for a signal.
func (s *session) end() int {
	s.t.Helper()
	select {
	case err := <-s.done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(runTime):
		_ = s.cmd.Process.Kill()
		s.t.Fatalf("the run does not end; it said\n%s", s.lines())
		return 0
	}
}

func (s *session) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Fatal(err)
	}
}

// await polls until a phase has come.
func (s *session) await(what string, come func() bool) {
	s.t.Helper()
	for end := time.Now().Add(phaseTime); !come(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s has not come; the run said\n%s", what, s.lines())
		}
	}
}

func there(patterns ...string) bool {
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			return true
		}
	}
	return false
}

// hasGroup reports whether a process of the lab has its control group.
func (s *session) hasGroup(name string) bool {
	path := filepath.Join("skerry", s.lab, name)
	return there(filepath.Join(groupRoot, path), filepath.Join(groupRoot, "*", path))
}

func (s *session) hasState(name string) bool { return there(filepath.Join(stateRoot, s.lab, name)) }

func TestKilled(t *testing.T) {
	phases := []struct {
		name string
		come func(*session) bool
	}{
		{"when the lab has its name", func(s *session) bool { return there(filepath.Join(stateRoot, s.lab+"*")) }},
		{"while the lab comes up", func(s *session) bool { return s.hasGroup("holders") }},
		{"while the emulator starts", func(s *session) bool { return s.hasState("links.log") }},
		{"while a system starts", func(s *session) bool { return s.hasGroup("step") }},
		{"while load runs", func(s *session) bool { return s.hasGroup("load") }},
		{"while the lab goes down", func(s *session) bool {
			return there(filepath.Join(s.out, "cells/*/1")) && there(filepath.Join(s.out, "cells/*/2"))
		}},
		{"while the report is written", func(s *session) bool {
			return there(filepath.Join(s.out, ".skerry-*"), filepath.Join(s.out, "report.html"))
		}},
	}
	b := newBench(t)
	for i, p := range phases {
		s := b.start("short.yaml")
		s.await(p.name, func() bool { return p.come(s) })
		b.killAndClean(s, p.name, i%2 == 0)
	}
}

func TestKilledAtRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	began := time.Now()
	if s := b.start("short.yaml"); s.end() != 0 {
		t.Fatal(s.lines())
	}
	whole := time.Since(began)
	for i := range kills {
		after := time.Duration(random.Int64N(int64(whole)))
		s := b.start("short.yaml")
		time.Sleep(after)
		b.killAndClean(s, fmt.Sprintf("after %s of %s", after, whole), i%2 == 0)
	}
}

// killAndClean kills a run, cleans up by doctor or by the next run, and wants
// the machine as it was.
func (b *bench) killAndClean(s *session, when string, doctor bool) {
	b.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.t.Fatal(err)
	}
	s.end()
	how := "the next run"
	if doctor {
		how = "doctor --clean"
		b.must("doctor", "--clean")
	} else if next := b.start("short.yaml"); next.end() != 0 {
		b.t.Fatalf("killed %s: the next run: %s", when, next.lines())
	}
	b.t.Logf("killed %s, cleaned by %s", when, how)
	b.before.await(b.t, b.mark, b.labs)
}

var interrupted = regexp.MustCompile(`(?m)^skerry: error: interrupted after (\d+) of 60 repetitions$`)

func TestInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			b := newBench(t)
			s := b.start("long.yaml")
			// One that was rejected comes again, and is not complete.
			whole := func() (n int) {
				all, _ := filepath.Glob(filepath.Join(s.out, "cells/*/*/repetition.json"))
				for _, path := range all {
					if !strings.Contains(path, ".rejected-") {
						n++
					}
				}
				return n
			}
			s.await("two repetitions", func() bool { return whole() >= 2 })
			s.signal(sig)
			if status := s.end(); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			match := interrupted.FindStringSubmatch(s.lines())
			if match == nil || strings.Count(s.lines(), "error:") != 1 {
				t.Fatalf("said\n%s", s.lines())
			}
			done, _ := strconv.Atoi(match[1])
			if n := whole(); n != done || done < 1 { // the last may have been rejected since
				t.Errorf("%d repetitions are complete, the run said %d", n, done)
			}
			// Every complete repetition counts with its first request apart.
			const counted = 9
			table := b.must("report", s.out)
			if want := fmt.Sprintf(" %d\n", done*counted); !strings.Contains(table, want) {
				t.Errorf("the table lacks n =%s%s", want, table)
			}
			b.before.await(t, b.mark, b.labs)
		})
	}
}

func TestInterruptedBeforeTheFirstRepetition(t *testing.T) {
	b := newBench(t)
	s := b.start("long.yaml")
	s.await("the lab", func() bool { return s.hasGroup("holders") })
	s.signal(syscall.SIGINT)
	if status := s.end(); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	if match := interrupted.FindStringSubmatch(s.lines()); match == nil || match[1] != "0" {
		t.Errorf("said\n%s", s.lines())
	}
	b.before.await(t, b.mark, b.labs)
}

// TestSideBySide starts runs, each of which cleans, and cleans besides: nobody
// may touch a lab that is up or on its way.
func TestSideBySide(t *testing.T) {
	b := newBench(t)
	var runs []*session
	for range 3 {
		runs = append(runs, b.start("short.yaml"))
	}
	cleaned := 0
	for all := 0; all < len(runs); cleaned++ {
		if out := b.must("doctor", "--clean"); strings.Contains(out, "run-") {
			t.Errorf("doctor --clean says %q", out)
		}
		all = 0
		for _, r := range runs {
			if there(filepath.Join(r.out, "report.html")) || len(r.done) > 0 {
				all++
			}
		}
	}
	for i, r := range runs {
		if status := r.end(); status != 0 {
			t.Errorf("run %d of 3: exit status %d\n%s", i+1, status, r.lines())
		}
	}
	t.Logf("cleaned %d times meanwhile", cleaned)
	b.before.await(t, b.mark, b.labs)
}
