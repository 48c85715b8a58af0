package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/console"
)

func statusCommand(now func() time.Time) *cobra.Command {
	var address string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --admin ADDRESS:PORT",
		Short: "Show a gateway: peers and how they do, certificates, exports and imports",
		Long: `Status asks a gateway that runs with --admin on this machine. RTT and loss are what the
kernel knows of the connections that are open now: the mean of their smoothed round-trip
times, and the share of segments that were sent again. Throughput is of the last ten
seconds. It exits 1 when a peer cannot be reached for TCP, or for UDP, and says which.`,
		Example: "  skerry fabric status --admin 127.0.0.1:4480",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := admin.Fetch(cmd.Context(), address)
			if err != nil {
				return console.Advised("no gateway answers: "+err.Error(), "name the address that it was given as --admin")
			}
			if asJSON {
				err = console.PrintJSON(cmd, s)
			} else {
				err = printStatus(cmd.OutOrStdout(), s, now())
			}
			for _, c := range s.Certificates {
				if c.Overdue {
					cmd.PrintErrf("skerry: warning: the %s certificate of %s was not renewed: see that 'skerry fabric renew --watch' runs\n", c.Of, s.Gateway)
				}
			}
			return errors.Join(err, unreachable(s))
		},
	}
	c.Flags().StringVar(&address, "admin", "", "ADDRESS:PORT that the gateway was given as --admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	console.Require(c, "admin")
	return c
}

// unreachable names the peers that cannot be reached.
func unreachable(s *admin.Status) error {
	var all []error
	for _, p := range s.Peers {
		var why []string
		for _, g := range p.Unreachable() {
			why = append(why, fmt.Sprintf("%s by %s, since %s: %s", g.Address, g.Transport, age(g.SinceNs), plain(g.Why)))
		}
		if len(why) == 0 {
			continue
		}
		all = append(all, fmt.Errorf("peer %s cannot be reached at %s", p.Name, strings.Join(why, "; at ")))
	}
	return errors.Join(all...)
}

// printStatus prints for people.
func printStatus(out io.Writer, s *admin.Status, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "gateway %s of %s: %s, by files of %s ago\n", s.Gateway, s.Fabric, s.Phase, age(s.SnapshotAgeNs))
	for _, c := range s.Certificates {
		overdue := ""
		if c.Overdue {
			overdue = ", which should have been renewed"
		}
		_, _ = fmt.Fprintf(w, "%s certificate until %s, for %s more%s\n", c.Of, c.End.Format(day), age(int64(c.End.Sub(now))), overdue)
	}
	if s.Listen != "" {
		_, _ = fmt.Fprintf(w, "peers call at %s\n", s.Listen)
	}
	if s.Flows != nil {
		_, _ = fmt.Fprintf(w, "flows are in %s: %d written, %d dropped\n", s.Flows.File, s.Flows.Written, s.Flows.Dropped)
	}
	printLinks(w, s)
	if len(s.Imports) > 0 {
		_, _ = fmt.Fprint(w, "\nIMPORT\tFROM\tLISTENS AT\n")
	}
	for _, i := range s.Imports {
		var at []string
		for _, a := range i.Listen {
			if !a.Listening {
				a.Address += " (not yet: see the log)"
			}
			at = append(at, a.Address)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", i.Service, strings.Join(i.From, ","), strings.Join(at, ", "))
	}
	if len(s.Exports) > 0 {
		_, _ = fmt.Fprint(w, "\nEXPORT\tBACKENDS\n")
	}
	for _, e := range s.Exports {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", e.Service, strings.Join(e.Backends, ", "))
	}
	return w.Flush()
}

// printLinks prints a line for each gateway of a peer that is called, or has called.
func printLinks(w io.Writer, s *admin.Status) {
	if len(s.Peers)+len(s.Callers) > 0 {
		_, _ = fmt.Fprint(w, "\nPEER\tGATEWAY\tDIRECTION\tTRANSPORT\tSTATE\tRTT\tLOSS\tCONNECTIONS\tSTREAMS\tSENT\tRECEIVED\n")
	}
	line := func(peer, gateway string, d flow.Direction, speaks string, l admin.Link) {
		state := string(l.State)
		if l.State == transport.Down {
			state += " for " + age(l.SinceNs)
		}
		rtt, loss := "-", "-"
		if l.RTTNs > 0 {
			rtt = time.Duration(l.RTTNs).Round(10 * time.Microsecond).String()
		}
		if l.Segments > 0 {
			loss = fmt.Sprintf("%.2f%%", 100*l.Loss())
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d, %d idle\t%d\t%s\t%s\n", peer, gateway, d, speaks, state, rtt, loss,
			l.Connections, l.Idle, l.Streams, rate(l.SentBytesPerSecond), rate(l.ReceivedBytesPerSecond))
	}
	for _, p := range s.Peers {
		for _, g := range p.Gateways {
			speaks := g.Transport
			if g.Reverse {
				speaks += " (reverse)"
			}
			line(p.Name, g.Address, flow.Import, speaks, g.Link)
		}
	}
	for _, c := range s.Callers {
		peer, gateway, _ := strings.Cut(c.Gateway, "/")
		line(peer, gateway, flow.Export, c.Transport, c.Link)
	}
}

// age is a time in seconds, or in days where it is long.
func age(ns int64) string {
	const daily = 24 * time.Hour
	d := time.Duration(ns)
	if d >= 2*daily {
		return console.Count(int(d/daily), "day")
	}
	return d.Round(time.Second).String()
}

// rate words bytes a second.
func rate(perSecond float64) string {
	const kilo, mega, giga = 1e3, 1e6, 1e9
	switch {
	case perSecond >= giga:
		return fmt.Sprintf("%.2f GB/s", perSecond/giga)
	case perSecond >= mega:
		return fmt.Sprintf("%.2f MB/s", perSecond/mega)
	case perSecond >= kilo:
		return fmt.Sprintf("%.2f kB/s", perSecond/kilo)
	}
	return fmt.Sprintf("%.0f B/s", perSecond)
}

// plain is a text without what would steer a terminal: peers may have written it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
