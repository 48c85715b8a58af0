package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/flow/journal"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/source/file"
	"skerry.dev/skerry/internal/console"
)

// wouldChange is what a dry run says, as JSON shows it.
type wouldChange struct {
	Resources string        `json:"resources"`
	Since     time.Time     `json:"since"`
	Flows     int           `json:"flows"`
	Otherwise int           `json:"otherwise"`
	Ungrouped int           `json:"ungrouped,omitempty"`
	Changes   []flow.Change `json:"changes"`
}

func dryRunCommand(now func() time.Time) *cobra.Command {
	var flows string
	var since time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "dry-run DIR --flows FILE",
		Short: "Say which flows of late the policies of a folder would decide otherwise",
		Long: `Dry-run reads what a gateway has recorded with --flows, FILE.1 and FILE, and decides
each flow again by the AccessPolicies in DIR: what was allowed and would be denied, what
was denied and would be allowed, and by which policy, grouped by service and attributes of
the client. It changes nothing. Flows that were refused before a policy was asked are not
counted.`,
		Example: "  skerry fabric dry-run new-resources --flows /var/log/skerry/flows.jsonl --since 24h",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := file.Read(args[0])
			if err != nil {
				return console.Usage(err, "")
			}
			begin := now().Add(-since)
			c := flow.Compare(policy.Compile(s.Policies), begin)
			for r, err := range journal.Read(flows) {
				if err != nil {
					return err
				}
				c.Add(r)
			}
			w := wouldChange{args[0], begin.UTC(), c.Flows, c.Otherwise, c.Ungrouped, c.Changes()}
			if asJSON {
				return console.PrintJSON(cmd, w)
			}
			return printChanges(cmd, w)
		},
	}
	c.Flags().StringVar(&flows, "flows", "", "file that the gateway was given as --flows")
	c.Flags().DurationVar(&since, "since", time.Hour, "how long ago flows may have begun")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	console.Require(c, "flows")
	return c
}

func printChanges(cmd *cobra.Command, c wouldChange) error {
	if err := done(cmd, "of %s since %s, %s would decide %d otherwise", console.Count(c.Flows, "flow"), c.Since.Format(time.RFC3339), c.Resources, c.Otherwise); err != nil {
		return err
	}
	if len(c.Changes) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "\nFLOWS\tDIRECTION\tSERVICE\tFROM\tWAS\tWOULD BE\n")
	for _, one := range c.Changes {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", one.Flows, one.Direction, plain(one.Cluster+"/"+one.Service), console.Dash(one.From), one.Was, one.Would)
	}
	if err := w.Flush(); err != nil || c.Ungrouped == 0 {
		return err
	}
	return done(cmd, "%s more are of other clients or services", console.Count(c.Ungrouped, "flow"))
}
