package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/loopback"
	"skerry.dev/skerry/proxy/agent"
	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/dispatch"
)

func explainCommand() *cobra.Command {
	var address string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain [NAMESPACE/SERVICE] --admin ADDRESS:PORT",
		Short: "Say what a proxy's next choice of a Service rests on",
		Long: `Explain asks a proxy that runs with --admin on this machine: for each endpoint of the
Service, what is in flight there, what is known of its node and how old that is, whether
it is left out for its failures, and by the policy cost what the next request takes at the
node alone (SERVICE), and what it costs as home and others are compared (COST: with the way,
and what waits there, which weighs up to six times). Without a Service it tells of all.`,
		Example: "  skerry proxy explain default/web --admin 127.0.0.1:4482",
		Args:    console.Within(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, service := agent.ExplainPath, ""
			if len(args) > 0 {
				service = args[0]
				path += "?service=" + url.QueryEscape(service)
			}
			var all []dispatch.Explanation
			err := loopback.Fetch(cmd.Context(), address, path, "proxy", &all)
			switch {
			case errors.Is(err, loopback.ErrNone):
				return console.Advised("no Service "+service+" has opted in", "'skerry proxy explain' without a name lists those that have")
			case err != nil:
				return console.Advised("no proxy answers: "+err.Error(), "name the address that it was given as --admin")
			case asJSON:
				return console.PrintJSON(cmd, all)
			}
			return printExplanations(cmd.OutOrStdout(), all)
		},
	}
	c.Flags().StringVar(&address, "admin", "", "ADDRESS:PORT that the proxy was given as --admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	console.Require(c, "admin")
	return c
}

// printExplanations prints for people: a table for each port.
func printExplanations(out io.Writer, all []dispatch.Explanation) error {
	for i, x := range all {
		if i > 0 {
			_, _ = fmt.Fprintln(out)
		}
		_, _ = fmt.Fprintf(out, "%s port %d/%s, traffic policy %s: policy %s%s\n", x.Service, x.Port, x.Protocol, x.TrafficPolicy, x.Policy, reason(x))
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ENDPOINT\tNODE\tCHOSEN\tIN FLIGHT\tQUEUE\tRTT\tCPU\tRAM\tSERVICE\tCOST\tSTATE")
		for _, e := range x.Endpoints {
			printEndpoint(w, e)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// reason is what a policy has worked out beside its endpoints.
func reason(x dispatch.Explanation) string {
	switch {
	case x.Policy == balance.RAP && x.Best != "":
		return ", what home cannot take goes to " + x.Best
	case x.Policy == balance.RAP:
		return ", no node can take what home cannot"
	case x.Crowd > 1:
		return fmt.Sprintf(", %.1f proxies are taken to do as this one", x.Crowd)
	default:
		return ""
	}
}

func printEndpoint(w io.Writer, e balance.EndpointExplanation) {
	queue, rtt, cpu, ram, service, cost := "-", "-", "-", "-", "-", "-"
	if e.Queue != nil {
		queue = fmt.Sprintf("%.1f (%s ago)", e.Queue.InFlight, short(e.QueueAge))
	}
	if e.RTT != nil {
		rtt = short(*e.RTT)
	}
	if e.Usage != nil {
		cpu, ram = fmt.Sprintf("%.0f%%", 100*e.Usage.CPU), fmt.Sprintf("%.0f%%", 100*e.Usage.RAM)
	}
	if e.Cost != nil {
		service, cost = short(e.Cost.Service), short(e.Cost.Total)
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
		e.ID, nodeName(e), e.Chosen, e.InFlight, queue, rtt, cpu, ram, service, cost, state(e))
}

func nodeName(e balance.EndpointExplanation) string {
	if e.Local {
		return e.Node + " (this)"
	}
	return console.Dash(e.Node)
}

// state is whether the endpoint takes connections.
func state(e balance.EndpointExplanation) string {
	switch {
	case e.Out > 0:
		return fmt.Sprintf("left out for %s more, after %s", short(e.Out), console.Count(int(e.Ejections), "ejection")) //nolint:gosec // small
	case e.Worth < 1:
		return fmt.Sprintf("back, worth %.0f%%", 100*e.Worth)
	case e.Failures > 0:
		return fmt.Sprintf("%s in a row", console.Count(e.Failures, "failure"))
	default:
		return "takes connections"
	}
}

// short is a time in three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.String()
}
