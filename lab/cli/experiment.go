package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair/recording"
	"skerry.dev/skerry/lab/impair/trace"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// fileMax bounds an experiment file.
const fileMax = 1 << 20

// source is an experiment file with the stacks of plug-ins that it names.
type source struct {
	*experiment.Experiment
	stacks  map[string]*system.Stack
	digests map[string]string
	// paths are the nodes that a request visits, by system.
	paths map[string][]topology.Ref
	// places of the topology, as systems see them.
	places system.Values
}

// read reads an experiment file, checks it, and renders every system dry. All
// that is wrong is a usageError.
func read(file, systemsDir string) (source, error) {
	data, err := readBounded(file)
	if err != nil {
		return source{}, err
	}
	return parse(file, data, systemsDir)
}

// parse is read of a file's text.
func parse(file string, data []byte, systemsDir string) (source, error) {
	tree, err := systemTree(systemsDir)
	if err != nil {
		return source{}, err
	}
	names, err := system.Names(tree)
	if err != nil {
		return source{}, usageError{error: err}
	}
	e, err := experiment.Read(file, data)
	if err == nil {
		err = errors.Join(e.CheckSystems(names), e.ResolveTraces(func(name string) (string, error) {
			return findTrace(filepath.Dir(file), name)
		}), e.ResolveRecordings(func(name string) (string, recording.Recording, error) {
			return findRecording(filepath.Dir(file), name)
		}))
	}
	if err != nil {
		return source{}, usageError{error: err}
	}
	return load(tree, e)
}

// findTrace names the trace of an experiment by its absolute path, unless it is
// built in, once it could be read.
func findTrace(folder, name string) (string, error) {
	if trace.Known(name) {
		return name, nil
	}
	path, err := absolute(folder, name)
	if err == nil {
		_, err = trace.Open(path)
	}
	return path, err
}

// findRecording reads a distribution of an experiment, and names it by its absolute
// path.
func findRecording(folder, name string) (path string, r recording.Recording, err error) {
	path, err = absolute(folder, name)
	if err == nil {
		r, err = recording.Open(path)
	}
	return path, r, err
}

// absolute path of a file that is named from a folder.
func absolute(folder, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	return filepath.Abs(name)
}

// withPlugins is an experiment that was read and checked before, with the
// stacks of plug-ins that it names.
func withPlugins(e *experiment.Experiment, systemsDir string) (source, error) {
	tree, err := systemTree(systemsDir)
	if err != nil {
		return source{}, err
	}
	return load(tree, e)
}

func load(tree fs.FS, e *experiment.Experiment) (s source, err error) {
	s = source{Experiment: e, stacks: map[string]*system.Stack{}, digests: map[string]string{}, paths: map[string][]topology.Ref{}}
	for _, name := range e.Systems {
		stack, err := system.Load(tree, name)
		if err != nil {
			return source{}, usageError{error: err}
		}
		err = stack.On(e.Substrate)
		if err == nil && e.Autoscaled(experiment.Cell{System: name}) != nil {
			err = stack.Scales()
		}
		if err != nil {
			return source{}, usageError{error: err}
		}
		values, err := system.ValuesFor(&e.Topology, "/dir", 1)
		if err == nil {
			err = stack.Render(values)
		}
		if err == nil {
			spoken := e.Load
			spoken.Protocol = e.Protocols()
			err = stack.Check(spoken)
		}
		if err == nil {
			s.digests[name], err = stack.Digest()
		}
		if err != nil {
			return source{}, usageError{error: err}
		}
		s.stacks[name], s.paths[name], s.places = stack, stack.Path(values), values
	}
	if err := checkTools(e); err != nil {
		return source{}, usageError{error: err}
	}
	return s, nil
}

func readBounded(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usageError{fmt.Errorf("there is no file %s", file), "name an experiment file, such as experiments/quickstart.yaml"}
	case err != nil:
		return nil, usageError{error: err}
	case info.IsDir():
		return nil, usageError{fmt.Errorf("%s is a folder", file), "name an experiment file in it"}
	case !info.Mode().IsRegular() || info.Size() > fileMax:
		return nil, usageError{
			fmt.Errorf("%s is not an experiment file", file), fmt.Sprintf("it must be a regular file of at most %d bytes", fileMax),
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{error: err}
	}
	return data, nil
}

// missing lists what the systems need and this machine lacks.
func (s source) missing() error {
	var problems []error
	for _, name := range s.Systems {
		problems = append(problems, s.stacks[name].Missing()...)
	}
	return errors.Join(problems...)
}

// build has the programs built that the systems need from Go modules.
func (s source) build(ctx context.Context, tell func(line string)) error {
	for _, name := range s.Systems {
		if err := s.stacks[name].Build(ctx, gobuild.Builder{Tell: tell}.Path); err != nil {
			return err
		}
	}
	return nil
}

func systemsFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("systems", "", "folder of system plug-ins (default: those built in)")
}

func (c *commands) validate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "validate FILE", Short: "Check an experiment file and the systems that it names; start nothing",
		Long: `Validate reads a file as 'skerry run' does and says of each mistake where it is and
what to write instead. Whether this machine can run it, 'skerry plan' says.`,
		Example: "  skerry validate experiments/quickstart.yaml",
		Args:    exactly(1),
	}
	dir := systemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := read(args[0], *dir)
		if err != nil {
			return err
		}
		cmd.Printf("%s: valid, %d cells x %d repetitions\n", args[0], len(s.Cells()), s.Repetitions)
		return nil
	}
	return cmd
}

func (c *commands) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan FILE", Short: "Show the cells, the way of a request, the time and the cores that a run needs",
		Long: `Plan prints each cell with the way of a request, how long a repetition takes at
least, and how many processes spin on a core; below the cells, which programs of
systems and load tools are missing on this machine, and what brings each. It starts
nothing.`,
		Example: "  skerry plan experiments/quickstart.yaml",
		Args:    exactly(1),
	}
	dir := systemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := read(args[0], *dir)
		if err != nil {
			return err
		}
		return s.printPlan(cmd)
	}
	return cmd
}

func (s source) printPlan(cmd *cobra.Command) error {
	cells := s.Cells()
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "CELL\tID\tESTIMATE\tBUSY CORES\tHOPS")
	var total time.Duration
	for _, cell := range cells {
		path := s.paths[cell.System]
		budget := cell.CoreBudget(s.stacks[cell.System].Need(len(s.Topology.Nodes())))
		cores := fmt.Sprint(budget.Total().BusyLoops)
		if err := budget.NotRunnable(runtime.NumCPU()); err != nil {
			cores = err.Error()
		}
		estimate := s.Estimate(cell, path...)
		total += estimate * time.Duration(s.Repetitions)
		hops := cell.Scenario.HopMap(path)
		hops.Within = s.stacks[cell.System].Within(s.places, cell)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cell, cell.ID(), estimate.Round(time.Millisecond), cores, hops)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	cmd.Printf("\n%d cells x %d repetitions, about %s on %d cores\n",
		len(cells), s.Repetitions, total.Round(time.Second), runtime.NumCPU())
	return printLacks(cmd, s.lacks())
}

func (c *commands) systems() *cobra.Command {
	cmd := &cobra.Command{
		Use: "systems", Short: "List the systems under test, what each needs and whether it is here",
		Long: `Systems lists what an experiment file may name under systems, alone or as a stack
such as nebula+haproxy-mtls. docs/systems.md says how to write one.`,
		Example: "  skerry systems\n  skerry systems --systems my-systems",
		Args:    exactly(0),
	}
	dir := systemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tree, err := systemTree(*dir)
		if err != nil {
			return err
		}
		names, err := system.Names(tree)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "SYSTEM\tKIND\tNEEDS\tHERE\tSUMMARY")
		for _, name := range names {
			p, err := system.LoadPlugin(tree, name)
			if err != nil {
				return err
			}
			needs, here := make([]string, len(p.Needs)), "yes"
			for i, n := range p.Needs {
				if needs[i] = n.Program; n.Module {
					needs[i] += " (module)"
				}
			}
			if missing := p.Missing(); len(missing) > 0 {
				here = "no: " + hint(missing[0])
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, dash(strings.Join(needs, ", ")), here, p.Summary)
		}
		return w.Flush()
	}
	return cmd
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// runDir is where a run is kept unless asked otherwise.
func runDir(name string, now time.Time) string {
	return filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
}

// notRunnable says of each cell that the machine's cores cannot carry, by its
// ID, why. The error is that of the first where nothing is left to run.
func (s source) notRunnable(cores int) (map[string]string, error) {
	lacks, all := map[string]string{}, s.Cells()
	var first error
	for _, cell := range all {
		budget := cell.CoreBudget(s.stacks[cell.System].Need(len(s.Topology.Nodes())))
		if err := budget.NotRunnable(cores); err != nil {
			lacks[cell.ID()] = err.Error()
			first = cmp.Or(first, fmt.Errorf("cell %s: %w", cell, err))
		}
	}
	if len(lacks) < len(all) {
		first = nil
	}
	return lacks, first
}
