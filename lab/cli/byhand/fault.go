package byhand

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
)

func (c *commands) fault() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fault", Short: "Have links, nodes, processes or pods of a lab fail, and undo it",
		Long: `Fault has something go wrong in a lab on purpose. A fault with --for is undone by
the command itself: after that time, at Ctrl-C, or when its terminal is closed. Any
other lasts, whatever becomes of the terminal: 'skerry fault list' shows it, 'skerry
fault undo' ends it, and 'skerry down' takes the lab down whatever is wrong with it.

There is no fault of the clock: the wall clock is one for the whole machine, and
Skerry does not step it.`,
		Example: `  skerry fault cut quickstart c1 c2 --for 10s
  skerry fault kill quickstart c1/worker
  skerry fault undo quickstart`,
		Args: console.KnownVerb, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.faultCut(), c.faultDegrade(), c.faultFreeze(), c.faultKill(), c.faultList(), c.faultUndo())
	cmd.AddCommand(c.faultReboot(), c.faultStopPlane(), c.faultEvict())
	return cmd
}

// forFlag is how long a fault lasts: 0 where it is not given.
func forFlag(cmd *cobra.Command, last *quantity.Duration) {
	cmd.Flags().Var(last, "for", "undo it after this time, such as 10s, or at Ctrl-C")
	console.WithoutDefault(cmd, "for")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("for") && *last == 0 {
			return console.Usage(errors.New("a fault cannot be for no time"), "write for example --for 10s, or leave --for out: then it lasts until it is undone")
		}
		return nil
	}
}

func (c *commands) faultCut() *cobra.Command {
	var oneWay bool
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "cut LAB FROM TO",
		Short: "Cut the link between two clusters or two nodes: every packet is lost",
		Long: `Cut has everything be lost on its way between two clusters, or two nodes, in both
directions or one. Packets under way still arrive where the back end is userspace.
The network of the lab's own control (mgmt) is not cut.`,
		Example: `  skerry fault cut quickstart c1 c2 --for 10s
  skerry fault cut quickstart c1/worker c2/worker --one-way`,
		Args: console.Exactly(3),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			directions, err := between(lab, args[0], args[1], oneWay)
			if err != nil {
				return err
			}
			return c.inject(cmd, lab, host.CutLink(directions...), last)
		}),
	}
	oneWayFlag(cmd, &oneWay)
	forFlag(cmd, &last)
	return cmd
}

func (c *commands) faultDegrade() *cobra.Command {
	var f linkFlags
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "degrade LAB FROM TO",
		Short: "Have a link do something else for a time",
		Long: `Degrade has a link do what the flags say in place of what was set for it, stages
and all: nothing of that is added. The flags are those of 'skerry link set'.`,
		Example: `  skerry fault degrade quickstart c1 c2 --delay 200ms --loss 5% --for 30s
  skerry fault degrade quickstart c1 c2 --rate 1mbit --one-way`,
		Args: console.Exactly(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if impair.Chain(f.does, f.then).IsZero() {
				return console.Usage(errors.New("degrade needs something for the link to do"), "add for example --delay 200ms or --loss 5%; 'skerry fault cut' cuts it")
			}
			lab, err := host.Open(args[0])
			if err != nil {
				return err
			}
			directions, err := f.directions(lab, args[1], args[2])
			if err != nil {
				return err
			}
			return c.inject(cmd, lab, host.Fault{Kind: host.Degrade, Links: directions}, last)
		},
	}
	f.add(cmd)
	forFlag(cmd, &last)
	return cmd
}

func (c *commands) faultFreeze() *cobra.Command {
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "freeze LAB NODE[:PROCESS]",
		Short: "Stop the processes of a node, or one of them, where they are",
		Long: `Freeze stops processes by SIGSTOP; undone, they go on from where they were. The
node's kernel goes on all the time: it answers pings, accepts connections and
acknowledges what is sent, as that of a real machine does whose service hangs.
PROCESS is a name as 'skerry ps' prints it, or that of a program; a process is
frozen with its children. What is started in the node afterwards is not frozen.

A node of a Kubernetes cluster is frozen with its pods: it becomes NotReady, and its
pods are taken out of Services, until some seconds after it goes on.`,
		Example: `  skerry fault freeze quickstart c1/worker --for 5s
  skerry fault freeze quickstart c1/worker:haproxy`,
		Args: console.Exactly(2),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			f, err := victim(lab, host.Freeze, args[0])
			if err != nil {
				return err
			}
			return c.inject(cmd, lab, f, last)
		}),
	}
	forFlag(cmd, &last)
	return cmd
}

func (c *commands) faultKill() *cobra.Command {
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "kill LAB NODE[:PROCESS]",
		Short: "Kill a node, or a process in it",
		Long: `Kill takes a node off its networks and ends all its processes by SIGKILL, as if its
power had failed: nobody is told. Undone, the node is on its networks again, as a
machine that has booted, with none of its processes; one of a Kubernetes cluster
starts its kubelet and all else, which bring its pods back.

A PROCESS, by its name in 'skerry ps' or its program's, is ended with its children;
the kernel closes its connections. That cannot be undone: start it anew.`,
		Example: `  skerry fault kill quickstart c1/worker --for 20s
  skerry fault kill quickstart c1/worker:haproxy`,
		Args: console.Exactly(2),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			f, err := victim(lab, host.Kill, args[0])
			if err != nil {
				return err
			}
			if f.Process != "" && last != 0 {
				return console.Usage(errors.New("a process that was killed does not come back"), "leave --for out, or kill its node")
			}
			return c.inject(cmd, lab, f, last)
		}),
	}
	forFlag(cmd, &last)
	return cmd
}

// victim is the fault of a node or a process: NODE[:PROCESS].
func victim(lab *host.Lab, kind host.FaultKind, target string) (host.Fault, error) {
	node, process, named := strings.Cut(target, ":")
	if named && process == "" {
		return host.Fault{}, console.Usage(fmt.Errorf("%q names no process", target), "write NODE, or NODE:PROCESS")
	}
	ref, err := nodeOf(lab, node)
	return host.Fault{Kind: kind, Node: ref, Process: process}, err
}

// inject has a fault begin and, where it is for a time, end.
func (c *commands) inject(cmd *cobra.Command, lab *host.Lab, f host.Fault, last quantity.Duration) error {
	f, err := lab.Inject(cmd.Context(), f)
	if err != nil {
		return wrongEnds(err)
	}
	if f.ID == 0 { // a process, with nothing to undo
		cmd.Printf("killed %s\n", f.Target())
		return nil
	}
	cmd.Printf("fault %d: %s %s\n", f.ID, f.Kind, f.Target())
	if last == 0 {
		cmd.PrintErrf("next: skerry fault undo %s %d\n", lab.Name, f.ID)
		return nil
	}
	began := c.now()
	select {
	case <-cmd.Context().Done():
	case <-time.After(last.Std()):
	}
	// The time is up by a signal, too: it does not keep the fault from being undone.
	err = cluster.Undo(context.WithoutCancel(cmd.Context()), lab, f.ID)
	switch {
	case errors.Is(err, host.ErrNoFault):
		cmd.PrintErrf("fault %d had been undone already\n", f.ID)
		return nil
	case errors.Is(err, host.ErrNoLab):
		cmd.PrintErrf("lab %s has gone down, and fault %d with it\n", lab.Name, f.ID)
		return nil
	case err != nil:
		return err
	}
	cmd.Printf("fault %d is undone after %s\n", f.ID, c.now().Sub(began).Round(time.Millisecond))
	return nil
}

// faultRow is a fault as list tells it.
type faultRow struct {
	Lab string `json:"lab"`
	host.Fault
}

func (c *commands) faultList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list [LAB]", Short: "List the faults in force, of one lab or of all",
		Example: "  skerry fault list\n  skerry fault list quickstart --json",
		Args:    console.Within(0, 1),
		RunE: func(cmd *cobra.Command, names []string) error {
			rows, err := listFaults(names)
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, rows)
			}
			return c.printFaults(cmd, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// listFaults of the labs that are named, or of all.
func listFaults(names []string) ([]faultRow, error) {
	all := len(names) == 0
	if all {
		var err error
		if names, err = host.Names(); err != nil {
			return nil, err
		}
	}
	rows := []faultRow{}
	for _, name := range names {
		lab, err := host.Open(name)
		if all && errors.Is(err, host.ErrNoLab) {
			continue // it went down, or is on its way up
		}
		if err != nil {
			return nil, err
		}
		for _, f := range lab.Faults {
			rows = append(rows, faultRow{name, f})
		}
	}
	return rows, nil
}

func (c *commands) printFaults(cmd *cobra.Command, rows []faultRow) error {
	if len(rows) == 0 {
		cmd.PrintErrln("no fault is in force")
		return nil
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "LAB\tFAULT\tKIND\tOF\tFOR")
	for _, r := range rows {
		of := r.Target()
		if r.Kind == host.Degrade {
			of += ": " + r.Links[0].Stages().String()
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", r.Lab, r.ID, r.Kind, of, c.now().Sub(r.Began).Round(time.Second))
	}
	return w.Flush()
}

func (c *commands) faultUndo() *cobra.Command {
	return &cobra.Command{
		Use: "undo LAB [FAULT]", Short: "Undo a fault by its number, or all faults of a lab",
		Long: `Undo has links do again what was set for them, frozen processes go on, and killed
nodes be on their networks again; processes that were killed it does not start, but
for those of killed nodes of Kubernetes clusters and of stopped control planes.`,
		Example: "  skerry fault undo quickstart 1\n  skerry fault undo quickstart",
		Args:    console.Within(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var number int
			if len(args) > 1 {
				var err error
				if number, err = strconv.Atoi(args[1]); err != nil || number < 1 {
					return console.Usage(fmt.Errorf("%q is no number of a fault", args[1]), "'skerry fault list' shows them")
				}
			}
			lab, err := host.Open(args[0])
			if err != nil {
				return err
			}
			if number > 0 {
				return undo(cmd, lab, number)
			}
			if len(lab.Faults) == 0 {
				cmd.PrintErrf("no fault of lab %s is in force\n", lab.Name)
			}
			var problems error
			for _, f := range lab.Faults {
				err := undo(cmd, lab, f.ID)
				if !errors.Is(err, host.ErrNoFault) { // another undo was faster
					problems = errors.Join(problems, err)
				}
			}
			return problems
		},
	}
}

func undo(cmd *cobra.Command, lab *host.Lab, number int) error {
	if err := cluster.Undo(cmd.Context(), lab, number); err != nil {
		return err
	}
	cmd.Printf("fault %d is undone\n", number)
	return nil
}
