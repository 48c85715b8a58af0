package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/overlay/control"
)

func statusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show a daemon: its clients, what became of packets, and how punctual it is",
		Long: `Status asks a daemon that runs on this machine what it has done since it began. Of a packet:
SENT, LATE (its time was past when it came), EARLY (its time lies beyond the horizon),
OVERSIZE (no window has room for it), FULL (the queue was), MISSED (no window came in
time). MISPLACED ones left outside of their window, since a poll came late; UNEXPLAINED
are those where no gap in polling says why, and there should be none.`,
		Args: console.Exactly(0),
	}
	path := controlFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return asked(cmd.Context(), *path, func(d *control.Client) error {
			s, err := d.Status()
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, s)
			}
			return printStatus(cmd.OutOrStdout(), s)
		})
	}
	return c
}

// printStatus prints for people.
func printStatus(out io.Writer, s control.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "up for %s, with %s and %s\n", time.Duration(s.ClockNs-s.StartedNs).Round(time.Second),
		console.Count(s.Clients, "client"), console.Count(s.Sockets, "socket"))
	if s.ChangeNs > 0 {
		_, _ = fmt.Fprintf(w, "another gate control list follows in %s\n", time.Duration(s.ChangeNs-s.ClockNs).Round(time.Millisecond))
	}
	for _, odd := range []struct {
		n    uint64
		what string
	}{
		{s.Malformed, "malformed"}, {s.Unrouted, "without a route"}, {s.Overrun, "not taken by the port"},
	} {
		if odd.n > 0 {
			_, _ = fmt.Fprintf(w, "%d packets were %s\n", odd.n, odd.what)
		}
	}
	if len(s.Classes) > 0 {
		_, _ = fmt.Fprint(w, "\nCLASS\tWAITING\tSENT\tLATE\tEARLY\tOVERSIZE\tFULL\tMISSED\tMISPLACED\tUNEXPLAINED\n")
	}
	for _, c := range s.Classes {
		_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", c.Class, c.Waiting, c.Sent, c.Late, c.Early, c.Oversize, c.Full, c.Missed, c.Misplaced, c.Unexplained)
	}
	_, _ = fmt.Fprint(w, "\n\tP50\tP99\tP99.9\tMAX\n")
	for _, spread := range []struct {
		name string
		control.Spread
	}{{"from its time to the port", s.Late}, {"from poll to poll", s.Gap}} {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", spread.name, spread.P50, spread.P99, spread.P999, spread.Max)
	}
	return w.Flush()
}
