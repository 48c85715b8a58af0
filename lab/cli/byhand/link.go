package byhand

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

func (c *commands) link() *cobra.Command {
	cmd := &cobra.Command{
		Use: "link", Short: "List and change the links of a lab",
		Example: "  skerry link set quickstart c1 c2 --delay 5ms --loss 0.1%\n  skerry link list quickstart",
		Args:    console.KnownVerb, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.linkSet(), c.linkList(), c.linkClear())
	return cmd
}

func (c *commands) linkSet() *cobra.Command {
	var f linkFlags
	cmd := &cobra.Command{
		Use:   "set LAB FROM TO",
		Short: "Impair both directions between two clusters or two nodes, or one of them",
		Long: `Set replaces what the link does; without a flag it does nothing again. FROM and
TO are two clusters (c1 c2) or two nodes (c1/worker c2/worker). A link of two nodes
wins over that of their clusters. The counters of all links begin anew.

Stages are met one after the other, as if they were links in a row: what the other
flags say is the first, each --then is a further one.`,
		Example: `  skerry link set quickstart c1 c2 --delay 5ms --loss 0.1% --rate 100mbit
  skerry link set quickstart c1 c2 --delay 5ms --burst 0.1%,25% --one-way
  skerry link set quickstart c1 c2 --delay 1ms --then delay=20ms,jitter=2ms,loss=1%`,
		Args: console.Exactly(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			lab, err := host.Open(args[0])
			if err != nil {
				return err
			}
			changes, err := f.directions(lab, args[1], args[2])
			if err != nil {
				return err
			}
			return editLinks(cmd, lab, changes, changes)
		},
	}
	f.add(cmd)
	return cmd
}

// between is the two directions between two ends, or the one, which do nothing.
func between(lab *host.Lab, from, to string, oneWay bool) ([]host.Link, error) {
	ends := lab.Topology.Refs()
	for _, end := range []string{from, to} {
		if !slices.Contains(ends, end) {
			return nil, console.Usage(fmt.Errorf("no cluster or node %q in lab %s", end, lab.Name), nearest.Hint(end, ends))
		}
	}
	all := []host.Link{
		{From: topology.Ref(from), To: topology.Ref(to)},
		{From: topology.Ref(to), To: topology.Ref(from)},
	}
	if oneWay {
		all = all[:1]
	}
	return all, nil
}

// editLinks takes directions away and puts others in.
func editLinks(cmd *cobra.Command, lab *host.Lab, away, in []host.Link) error {
	err := lab.EditLinks(cmd.Context(), func(links []host.Link) []host.Link {
		links = slices.DeleteFunc(links, func(l host.Link) bool {
			return slices.ContainsFunc(away, func(a host.Link) bool { return a.Name() == l.Name() })
		})
		return append(links, in...)
	})
	return wrongEnds(err)
}

func wrongEnds(err error) error {
	if errors.Is(err, host.ErrEnds) {
		return console.Usage(err, "name two clusters or two nodes")
	}
	return err
}

func (c *commands) linkClear() *cobra.Command {
	var oneWay bool
	cmd := &cobra.Command{
		Use:   "clear LAB [FROM TO]",
		Short: "Have a link do nothing again, or all links of a lab",
		Long: `Clear takes away what was set for the link, or for all links. A link between two
nodes then does what that of their clusters does. Faults stay: 'skerry fault undo'
ends them.`,
		Example: "  skerry link clear quickstart c1 c2\n  skerry link clear quickstart",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !oneWay || len(args) == 3 {
				return nil
			}
			return console.WantsArgs(cmd, len(args))
		},
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			if len(args) == 0 {
				return editLinks(cmd, lab, lab.Links, nil)
			}
			away, err := between(lab, args[0], args[1], oneWay)
			if err != nil {
				return err
			}
			return editLinks(cmd, lab, away, nil)
		}),
	}
	oneWayFlag(cmd, &oneWay)
	return cmd
}

// linkRow is one direction as list tells it.
type linkRow struct {
	host.Link
	// Fault that covers the direction, 0 for none.
	Fault    int             `json:"fault,omitempty"`
	Counters impair.Counters `json:"counters"`
}

func (c *commands) linkList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list LAB", Aliases: []string{"show"},
		Short: "List the links of a lab, what each direction does and what it has done",
		Long: `List prints a line for each direction that was set, or that a fault covers, with
what it has done since links were last set: packets and bytes that came to it, and
of those packets how many were lost as asked for, did not fit into the queue, left
later than they should, were missed by an emulator that fell behind, arrived twice,
had a bit flipped, and overtook others.`,
		Example: "  skerry link list quickstart",
		Args:    console.Exactly(1),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			status, err := lab.LinkStatus(cmd.Context())
			if err != nil {
				return err
			}
			rows := []linkRow{}
			for _, l := range lab.LinksInForce() {
				rows = append(rows, linkRow{l, lab.FaultOf(l), status.Counters[l.Name()]})
			}
			if asJSON {
				return console.PrintJSON(cmd, rows)
			}
			return printLinks(cmd, lab.Name, rows)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func printLinks(cmd *cobra.Command, name string, rows []linkRow) error {
	if len(rows) == 0 {
		cmd.PrintErrf("no link of lab %s does anything; 'skerry link set' impairs one\n", name)
		return nil
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "LINK\tDOES\tPACKETS\tBYTES\tLOST\tOVERFLOWED\tLATE\tMISSED\tDUPLICATED\tCORRUPTED\tREORDERED")
	for _, r := range rows {
		does := r.Stages().String()
		if r.Fault != 0 {
			does += fmt.Sprintf(" (fault %d)", r.Fault)
		}
		n := r.Counters
		_, _ = fmt.Fprintf(w, "%s > %s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", r.From, r.To, does,
			n.Packets, n.Bytes, n.Lost, n.Overflowed, n.Late, n.Missed, n.Duplicated, n.Corrupted, n.Reordered)
	}
	return w.Flush()
}
