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

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/sample"
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
// load. All that the tool writes stays in the repetition's folder; the samples
// beside it are made of that.
func (r *runner) driveTool(ctx context.Context, a *attempt, job adapter.Job) (host.Use, error) {
	c := a.Cell
	program, found := r.Tools[c.Tool]
	if !found {
		return host.Use{}, &ToolError{Tool: c.Tool, Err: errGone}
	}
	invocation, err := adapter.Plan(job)
	if err != nil {
		return host.Use{}, err
	}
	for name, data := range invocation.Files {
		if err := os.WriteFile(filepath.Join(a.dir, name), data, 0o644); err != nil {
			return host.Use{}, fmt.Errorf("load by %s: %w", c.Tool, err)
		}
	}
	a.result.Command = slices.Concat(invocation.Env, program.Args, invocation.Args)
	began := adapter.Moment{RealNs: clock.Real(), MonoNs: clock.Mono()}
	use, err := r.runTool(ctx, a, slices.Concat(program.Args, invocation.Args), invocation)
	if err != nil {
		return use, err
	}
	result, err := adapter.Read(job, os.DirFS(a.dir), began)
	if err != nil {
		return use, &ToolError{Tool: c.Tool, Err: err}
	}
	a.result.Total = result.Total
	return use, writeRequests(filepath.Join(a.dir, samplesFile), result.Requests)
}

// runTool waits until the tool ends, but no longer than its slowest load takes.
func (r *runner) runTool(ctx context.Context, a *attempt, args []string, invocation adapter.Invocation) (use host.Use, err error) {
	out, err := os.Create(filepath.Join(a.dir, invocation.Stdout))
	if err != nil {
		return host.Use{}, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	problems, err := os.Create(filepath.Join(a.dir, toolErrors))
	if err != nil {
		return host.Use{}, err
	}
	defer func() { err = errors.Join(err, problems.Close()) }()
	process, err := r.lab.Start(host.Command{
		Node: r.Experiment.Topology.Client, Name: loadName, Dir: a.dir, Args: args, Env: invocation.Env, Stdout: out, Stderr: problems,
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
		said, _ := os.ReadFile(filepath.Join(a.dir, toolErrors)) // what it said is not the error
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
