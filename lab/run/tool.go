package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

const (
	// toolErrors has what a load's tool says beside its output.
	toolErrors = "tool.err"
	// toolGrace is what a tool may take beyond its requests.
	toolGrace = time.Minute
	// toolLines of what a tool said as it failed are told.
	toolLines = 3
)

// ToolError says that a load's tool failed.
type ToolError struct {
	Tool string
	Err  error
	// Said are the last lines of its complaint; there may be none.
	Said string
}

// Error names the tool, how it ended and what it said.
func (e *ToolError) Error() string {
	text := fmt.Sprintf("load by %s: %v", e.Tool, e.Err)
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// Unwrap gives how it ended.
func (e *ToolError) Unwrap() error { return e.Err }

// errGone says that a run was resumed without a tool that it had.
var errGone = errors.New("it is no longer here")

// errLong says that a tool was ended.
var errLong = errors.New("it took longer than every request together may")

// driveTool runs a cell's own tool in the client's node, in place of Skerry's
// load, of a cell with a ratio one for each entry, at the same time. All that the tool
// writes stays in the repetition's folder; the samples beside it are made of that.
func (r *runner) driveTool(ctx context.Context, a *attempt, job adapter.Job) (host.Use, error) {
	program, found := r.Tools[a.Cell.Tool]
	if !found {
		return host.Use{}, &ToolError{Tool: a.Cell.Tool, Err: errGone}
	}
	jobs := job.Split()
	var tools []tool
	for i, one := range jobs {
		t := tool{name: loadName, dir: a.dir}
		if len(jobs) > 1 {
			t.name = fmt.Sprintf("%s%d", loadName, i+1)
			t.dir = filepath.Join(a.dir, t.name)
		}
		if i > 0 { // as in a shell
			a.result.Command = append(a.result.Command, "&")
		}
		if err := t.ready(one, program.Args); err != nil {
			return host.Use{}, err
		}
		tools = append(tools, t)
		a.result.Command = slices.Concat(a.result.Command, t.Env, t.args)
	}
	began := adapter.Moment{RealNs: clock.Real(), MonoNs: clock.Mono()}
	use, err := r.runTools(ctx, a, tools)
	if err != nil {
		return use, err
	}
	result, err := readTools(jobs, tools, began)
	if err != nil {
		return use, &ToolError{Tool: a.Cell.Tool, Err: err}
	}
	a.result.Total = result.Total
	return use, writeRequests(filepath.Join(a.dir, samplesFile), result.Requests)
}

// tool is one that runs as a process of its own.
type tool struct {
	adapter.Invocation
	name, dir string
	args      []string
}

// ready plans a job, and writes its files.
func (t *tool) ready(job adapter.Job, program []string) (err error) {
	if t.Invocation, err = adapter.Plan(job); err != nil {
		return err
	}
	t.args = slices.Concat(program, t.Args)
	err = os.MkdirAll(t.dir, 0o755)
	for name, data := range t.Files {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.dir, name), data, 0o644))
	}
	if err != nil {
		return fmt.Errorf("load by %s: %w", job.Cell.Tool, err)
	}
	return nil
}

// readTools makes one result of what all have written.
func readTools(jobs []adapter.Job, tools []tool, began adapter.Moment) (adapter.Result, error) {
	var results []adapter.Result
	for i, t := range tools {
		result, err := adapter.Read(jobs[i], os.DirFS(t.dir), began)
		if err != nil {
			return adapter.Result{}, err
		}
		results = append(results, result)
	}
	return adapter.Merge(jobs, results)
}

// runTools waits until all have ended; one that fails ends the others. Together they are
// the load, and so is what they use.
func (r *runner) runTools(ctx context.Context, a *attempt, tools []tool) (host.Use, error) {
	running, ctx := errgroup.WithContext(ctx)
	uses := make([]host.Use, len(tools))
	for i, t := range tools {
		running.Go(func() (err error) {
			uses[i], err = r.runTool(ctx, a, t)
			return err
		})
	}
	err := running.Wait()
	return together(r.Experiment.Topology.Client, uses), err
}

// together is what several loads at a node use.
func together(node topology.Ref, uses []host.Use) host.Use {
	use := host.Use{Name: loadName, Node: node}
	for _, u := range uses {
		use.CPU += u.CPU
		use.MemoryPeak += u.MemoryPeak
	}
	return use
}

// runTool waits until the tool ends, but no longer than its slowest load takes.
func (r *runner) runTool(ctx context.Context, a *attempt, t tool) (use host.Use, err error) {
	out, err := os.Create(filepath.Join(t.dir, t.Stdout))
	if err != nil {
		return host.Use{}, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	problems, err := os.Create(filepath.Join(t.dir, toolErrors))
	if err != nil {
		return host.Use{}, err
	}
	defer func() { err = errors.Join(err, problems.Close()) }()
	process, err := r.lab.Start(host.Command{
		Node: r.Experiment.Topology.Client, Name: t.name, Dir: t.dir, Args: t.args, Env: t.Env, Stdout: out, Stderr: problems,
	})
	if err != nil {
		return host.Use{}, err
	}
	late := time.NewTimer(toolMost(a.Cell))
	defer late.Stop()
	var ended error
	select {
	case <-process.Done():
		ended = process.Err()
	case <-late.C:
		ended = errLong
	case <-ctx.Done():
	}
	use, err = process.Stop(stopGrace)
	if ended != nil && ctx.Err() == nil {
		said, _ := os.ReadFile(filepath.Join(t.dir, toolErrors)) // what it said is not the error
		return use, &ToolError{Tool: a.Cell.Tool, Err: ended, Said: lastLines(string(said))}
	}
	return use, errors.Join(err, ctx.Err())
}

// toolMost is what a tool may take for a load.
func toolMost(c experiment.Cell) time.Duration { return adapter.Longest(c) + toolGrace }

// lastLines of what a tool said, joined.
func lastLines(said string) string {
	lines := strings.FieldsFunc(said, func(r rune) bool { return r == '\n' })
	return strings.Join(lines[max(0, len(lines)-toolLines):], "; ")
}

func writeRequests(path string, rows []sample.Request) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(sample.WriteRequests(f, rows), f.Close())
}
