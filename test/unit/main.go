// Command unit runs the tests of every package, one package at a time, and tries those
// again that failed while the hypervisor took the cores away: of tests that hold
// measured times to bounds, such a failure says nothing. It prints what go test prints,
// and the tests that it tries again with the reason. It exits 1 when a test fails on a
// machine that was its own, or in every try. Of a test that holds times (quiet.Timed) and
// was robbed in every try it says that nothing is known. Start at run.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"skerry.dev/skerry/test/quiet"
)

const (
	triesMax = 5
	// noisy is the share of the cores' time that a hypervisor takes from a package's
	// run for a failure to say nothing.
	noisy = 0.02
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "unit: error: %v\n", err)
		os.Exit(1)
	}
}

// run tests the packages that are named as go test takes them, all by default; flags of
// go test may stand before them.
func run(ctx context.Context, out io.Writer, args []string) error {
	first := 0
	for first < len(args) && strings.HasPrefix(args[first], "-") {
		first++
	}
	flags, packages := append([]string{"test", "-json", "-count=1", "-timeout=20m", "-p=1"}, args[:first]...), args[first:]
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	results, err := test(ctx, out, slices.Concat(flags, packages))
	if err != nil {
		return err
	}
	again, failed, unknown := judge(results, 1)
	for try := 2; len(again) > 0; try++ {
		for _, r := range again {
			fmt.Fprintf(out, "unit: %s: %s failed while the hypervisor had %.0f%% of the cores: try %d of %d follows\n", r.name, r.which(), 100*r.stolen, try, triesMax)
		}
		if _, err := quiet.Await(ctx); err != nil {
			return err
		}
		results = nil
		for _, r := range again {
			of, err := test(ctx, out, slices.Concat(flags, []string{"-run", r.pattern(), r.name}))
			if err != nil {
				return err
			}
			results = append(results, of...)
		}
		var broken []string
		again, broken, unknown = judge(results, try)
		failed = append(failed, broken...)
	}
	for _, r := range unknown {
		fmt.Fprintf(out, "unit: %s: nothing is known of %s: in each of %d tries a hypervisor took the cores, at last %.0f%% of them\n", r.name, r.which(), triesMax, 100*r.stolen)
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// result is what became of a package's tests.
type result struct {
	name   string
	passed bool
	// tests have failed, of those that no other contains; none where the package ended
	// otherwise.
	tests []string
	// robbed says that all that failed holds times, and had the cores taken away.
	robbed bool
	// stolen is the hypervisor's share of the cores' time while it ran, of 1.
	stolen float64
	// crashed says that the program broke in a way that no other load excuses.
	crashed bool
}

// which tests have failed.
func (r result) which() string {
	if len(r.tests) == 0 {
		return "the package"
	}
	return strings.Join(r.tests, ", ")
}

// pattern is of the tests that are to be tried again, as go test -run takes it.
func (r result) pattern() string {
	if len(r.tests) == 0 {
		return "."
	}
	return "^(" + strings.Join(r.tests, "|") + ")$"
}

// judge says which packages are to be tried again, which have failed for good, and of
// which nothing can be known on this machine.
func judge(results []result, try int) (again []result, failed []string, unknown []result) {
	for _, r := range results {
		switch {
		case r.passed:
		case r.crashed:
			failed = append(failed, r.name)
		case r.stolen >= noisy && try < triesMax:
			again = append(again, r)
		case r.robbed && try == triesMax:
			unknown = append(unknown, r)
		default:
			failed = append(failed, r.name)
		}
	}
	return again, failed, unknown
}

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// test runs the go command with such arguments.
func test(ctx context.Context, out io.Writer, args []string) ([]result, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	// The tests take down what they have made, when they hear of it themselves.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := newReader(out)
	if err := r.read(events, quiet.Now); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil && len(r.results) == 0 {
		return nil, fmt.Errorf("go test: %w", err)
	}
	return r.results, ctx.Err()
}

// reader follows the events of a run.
type reader struct {
	out     io.Writer
	said    map[string]*strings.Builder // by test, of those that have not ended
	began   map[string]quiet.Moment
	failed  map[string][]string // tests and those within them, by package
	whole   map[string]bool     // packages whose tests have all been run
	robbed  map[string]bool     // of failed, by package and name
	crashed map[string]bool     // packages whose program broke
	results []result
}

func newReader(out io.Writer) *reader {
	return &reader{out: out, said: map[string]*strings.Builder{}, began: map[string]quiet.Moment{}, failed: map[string][]string{}, whole: map[string]bool{}, robbed: map[string]bool{}, crashed: map[string]bool{}}
}

func (r *reader) read(events io.Reader, now func() (quiet.Moment, error)) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = r.out.Write(line) // of the build, which speaks no JSON at times
			continue
		}
		if err := r.take(e, now); err != nil {
			return err
		}
	}
}

// take prints what a person wants to see: what failed, and how packages ended.
func (r *reader) take(e event, now func() (quiet.Moment, error)) error {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "start":
		at, err := now()
		r.began[e.Package] = at
		return err
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if e.Test == "" && e.Output == "PASS\n" { // the line of the package follows
			return nil
		}
		if e.Test == "" && e.Output == "FAIL\n" {
			r.whole[e.Package] = true
		}
		if quiet.Marked(e.Output) {
			r.robbed[key] = true
		}
		if breaks(e.Output) {
			r.crashed[e.Package] = true
		}
		if r.said[key] == nil {
			r.said[key] = &strings.Builder{}
		}
		r.said[key].WriteString(e.Output)
	case "pass", "skip", "fail":
		if said := r.said[key]; said != nil && (e.Test == "" || e.Action == "fail") {
			fmt.Fprint(r.out, said)
		}
		if e.Action == "fail" || !r.crashed[e.Package] { // a data race between tests is said within one that passes
			delete(r.said, key)
		}
		if e.Test != "" {
			if e.Action == "fail" {
				r.failed[e.Package] = append(r.failed[e.Package], e.Test)
			}
			return nil
		}
		if e.Action == "fail" {
			r.tellUnended(e.Package)
		}
		at, err := now()
		if err != nil {
			return err
		}
		r.results = append(r.results, r.result(e.Package, e.Action != "fail", at))
	}
	return nil
}

// breaks says whether a line is of a program that has panicked or has a data race. One whose
// time was over panics, too, which may be another load's doing.
func breaks(line string) bool {
	if strings.HasPrefix(line, "panic: test timed out") {
		return false
	}
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "WARNING: DATA RACE")
}

// tellUnended prints what tests of a package said that did not fail by themselves: it is why the
// package did.
func (r *reader) tellUnended(name string) {
	for _, key := range slices.Sorted(maps.Keys(r.said)) {
		if strings.HasPrefix(key, name+" ") {
			fmt.Fprint(r.out, r.said[key])
			delete(r.said, key)
		}
	}
}

// result puts together what became of a package that ended then.
func (r *reader) result(name string, passed bool, at quiet.Moment) result {
	failed := r.failed[name]
	if !r.whole[name] { // it ended before its last test
		failed = nil
	}
	of := result{name: name, passed: passed, robbed: len(failed) > 0, stolen: at.Since(r.began[name]), crashed: r.crashed[name]}
	for _, test := range failed {
		if !strings.Contains(test, "/") {
			of.tests = append(of.tests, test)
		}
		// A test fails too when one within it does.
		within := slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, test+"/") })
		of.robbed = of.robbed && (within || r.robbed[name+" "+test])
	}
	return of
}
