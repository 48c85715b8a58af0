package runs

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
)

func (c *commands) validate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "validate FILE...", Short: "Check experiment files and the systems that they name; start nothing",
		Long: `Validate reads files as 'skerry run' does and says of each mistake where it is and
what to write instead. Whether this machine can run them, 'skerry plan' says.`,
		Example: "  skerry validate experiments/quickstart.yaml\n  skerry validate experiments/*.yaml",
		Args:    console.Some(),
	}
	dir := source.SystemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		var wrong []string
		for _, file := range files {
			s, err := readSuited(file, *dir)
			if err == nil {
				cmd.Printf("%s: valid, %d cells x %d repetitions\n", file, len(s.Cells()), s.Repetitions)
				continue
			}
			wrong = append(wrong, err.Error())
			if hint := verb.Hint(err); hint != "" {
				wrong = append(wrong, "hint: "+hint) // at its file, of several
			}
		}
		if len(wrong) > 0 {
			return console.Usage(errors.New(strings.Join(wrong, "\n")), "")
		}
		return nil
	}
	return cmd
}

// readSuited reads an experiment file, and refuses one whose systems its clusters do not suit.
func readSuited(file, systems string) (source.File, error) {
	s, err := source.Read(file, systems)
	if err == nil {
		if err = s.Suited(); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	return s, err
}

func (c *commands) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan FILE", Short: "Show the cells, the way of a request, the time and the cores that a run needs",
		Long: `Plan prints each cell with the way of a request, how long a repetition takes at
least, and how many processes spin on a core; below the cells, which programs of
systems and load tools are missing on this machine, and what brings each. It starts
nothing.`,
		Example: "  skerry plan experiments/quickstart.yaml",
		Args:    console.Exactly(1),
	}
	dir := source.SystemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := readSuited(args[0], *dir)
		if err != nil {
			return err
		}
		return printPlan(cmd, s)
	}
	return cmd
}

func printPlan(cmd *cobra.Command, s source.File) error {
	cells := s.Cells()
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "CELL\tID\tESTIMATE\tBUSY CORES\tHOPS")
	lacks, _ := s.NotRunnable(runtime.NumCPU()) // each is told in its line
	var total time.Duration
	for _, cell := range cells {
		path, stack := s.Paths[cell.System], s.Stacks[cell.System]
		estimate, cores := s.Estimate(cell, path...), lacks[cell.ID()]
		if cores == "" {
			total += estimate * time.Duration(s.Repetitions)
			cores = fmt.Sprint(cell.CoreBudget(stack.Need(len(s.Topology.Nodes()))).Total().BusyLoops)
		}
		hops := cell.Scenario.HopMap(path)
		hops.Within = stack.Within(s.Places, cell)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cell, cell.ID(), estimate.Round(time.Millisecond), cores, hops)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	cmd.Printf("\n%d cells x %d repetitions, about %s on %d cores\n",
		len(cells), s.Repetitions, total.Round(time.Second), runtime.NumCPU())
	if s.Emulator == experiment.EmulatorApart {
		cmd.Println("the emulator of links has one of them for itself")
	}
	return printLacks(cmd, s.Lacks())
}

func (c *commands) systems() *cobra.Command {
	cmd := &cobra.Command{
		Use: "systems", Short: "List the systems under test, what each needs and whether it is here",
		Long: `Systems lists what an experiment file may name under systems, alone or as a stack
such as nebula+haproxy-mtls. docs/systems.md says how to write one.`,
		Example: "  skerry systems\n  skerry systems --systems my-systems",
		Args:    console.Exactly(0),
	}
	dir := source.SystemsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tree, err := source.SystemTree(*dir)
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
			for _, qdisc := range p.Qdiscs {
				needs = append(needs, qdisc+" (qdisc)")
			}
			if err := errors.Join(append(p.Missing(), p.KernelLacks())...); err != nil {
				here = "no: " + verb.Hint(err)
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Kind, console.Dash(strings.Join(needs, ", ")), here, p.Summary)
		}
		return w.Flush()
	}
	return cmd
}

// runDir is where a run is kept unless asked otherwise.
func runDir(name string, now time.Time) string {
	return filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
}

// printLacks prints what is missing, and what brings it; nothing where nothing is.
func printLacks(cmd *cobra.Command, lacks []error) error {
	if len(lacks) == 0 {
		return nil
	}
	cmd.Println()
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MISSING HERE\tREMEDY")
	for _, lack := range lacks {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", lack, console.Dash(verb.Hint(lack)))
	}
	return w.Flush()
}
