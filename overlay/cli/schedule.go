package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/overlay/control"
	"skerry.dev/skerry/overlay/schedule"
)

// fileMax bounds a plan: ten thousand flows are less.
const fileMax = 4 << 20

func scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Check a gate control list, and have a daemon keep to it",
		Args:  console.KnownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(checkCommand(), loadCommand())
	return c
}

// checked is what a check says, as JSON shows it.
type checked struct {
	Plan    string           `json:"plan"`
	Classes []schedule.Class `json:"classes"`
}

func checkCommand() *cobra.Command {
	var asJSON bool
	var class int
	var size quantity.Size
	var period quantity.Duration
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what each traffic class has of a cycle, and whether all flows fit",
		Long: `Check reads a plan: link, guard, cycle, entries and flows. A class fits where its frames do
at the worst: with all frames of higher classes in its windows before them, in each window
one of a lower class, and each window but one left unfilled by less than a frame.
--size and --period ask for one more flow, of --class: it is admitted, or refused with what
a cycle lacks. It exits 1 where something does not fit.`,
		Example: "  skerry overlay schedule check line.yaml\n  skerry overlay schedule check line.yaml --class 6 --size 256B --period 1ms",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			if size != 0 || period != 0 {
				return admit(cmd, *p, schedule.Flow{Name: "asked", Class: class, Size: size, Period: period})
			}
			classes, refusals := p.Check()
			if asJSON {
				err = console.PrintJSON(cmd, checked{args[0], classes})
			} else {
				err = printClasses(cmd.OutOrStdout(), *p, classes)
			}
			all := []error{err}
			for _, r := range refusals {
				all = append(all, r)
			}
			return errors.Join(all...)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&class, "class", schedule.Classes-1, "traffic class of the flow that is asked for")
	c.Flags().Var(&size, "size", "payload of its packets")
	c.Flags().Var(&period, "period", "time from one of its packets to the next")
	return c
}

func readPlan(file string) (*schedule.Plan, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > fileMax {
		err = fmt.Errorf("%s has %d bytes: a plan has %d at most", file, info.Size(), fileMax)
	}
	if err != nil {
		return nil, console.Usage(err, "name the file of a plan")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, console.Usage(err, "name the file of a plan")
	}
	p, err := schedule.Read(file, data)
	if err != nil {
		return nil, console.Usage(err, "")
	}
	return p, nil
}

// admit says whether one more flow fits.
func admit(cmd *cobra.Command, p schedule.Plan, f schedule.Flow) error {
	for _, wrong := range f.Wrong() {
		return console.Usage(fmt.Errorf("--%s: %s", wrong.Key, wrong.Message), wrong.Hint)
	}
	if err := p.Admit(f); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "admitted: %s every %s in class %d\n", f.Size, f.Period, f.Class)
	return err
}

// printClasses prints for people.
func printClasses(out io.Writer, p schedule.Plan, classes []schedule.Class) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "a cycle of %s on %s, guard band %s\n\n", p.Cycle, p.Link, p.Guard)
	_, _ = fmt.Fprint(w, "CLASS\tWINDOWS\tOPEN\tUSABLE\tFLOWS\tTHEY TAKE\tOTHERS TAKE\tUSED\tLACKS\n")
	for _, c := range classes {
		lacks := "-"
		if c.Lacks > 0 {
			lacks = c.Lacks.String()
		}
		_, _ = fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%d\t%s\t%s\t%.1f%%\t%s\n", c.Class, c.Windows, c.Open, c.Usable, c.Flows, c.Demand, c.Others, 100*c.Utilisation(), lacks)
	}
	return w.Flush()
}

func loadCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "load FILE",
		Short: "Have a daemon keep to a gate control list, from its base time on",
		Long: `Load checks a plan as 'check' does, and hands its list to the daemon, which changes over at
the plan's base time, or where that is past at the next beginning of a cycle (802.1Q
§8.6.9.3.1). A plan in which something does not fit is refused, unless --force is given.`,
		Args: console.Exactly(1),
	}
	path := controlFlag(c)
	c.Flags().BoolVar(&force, "force", false, "load it also where flows do not fit")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := readPlan(args[0])
		if err != nil {
			return err
		}
		if _, refusals := p.Check(); len(refusals) > 0 && !force {
			return console.Advised(refusals[0].Error(), "'skerry overlay schedule check "+args[0]+"' shows all; --force loads it as it is")
		}
		return asked(cmd.Context(), *path, func(d *control.Client) error {
			changeNs, err := d.Load(list(*p))
			if err != nil {
				return err
			}
			text := "in force"
			if changeNs > 0 {
				text = "in force from " + time.Unix(0, changeNs).UTC().Format("2006-01-02T15:04:05.000000000") + " TAI on"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		})
	}
	return c
}

// list is a plan's as the daemon takes it.
func list(p schedule.Plan) control.Schedule {
	s := control.Schedule{BaseNs: p.BaseTime, Cycle: p.Cycle.Std(), Extension: p.Extension.Std()}
	for _, e := range p.Entries {
		entry := control.Entry{For: e.For.Std()}
		for _, class := range e.Open {
			entry.Open |= 1 << class
		}
		s.Entries = append(s.Entries, entry)
	}
	return s
}

func explainCommand() *cobra.Command {
	var class int
	var asJSON bool
	size := quantity.Size(64)
	var at quantity.Duration
	c := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say when a packet leaves by a gate control list, and why then",
		Long: `Explain says of a plan when a packet leaves whose transmission time lies --at into a cycle,
where no other packet is in its way.`,
		Example: "  skerry overlay explain line.yaml --class 7 --size 256B --at 350us",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			for _, wrong := range (schedule.Flow{Class: class, Size: size, Period: p.Cycle}).Wrong() {
				return console.Usage(fmt.Errorf("--%s: %s", wrong.Key, wrong.Message), wrong.Hint)
			}
			d, err := p.Explain(class, size, p.BaseTime+int64(at))
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, d)
			}
			var text strings.Builder
			_, _ = fmt.Fprintf(&text, "%s in class %d at %s leaves %s later, at %s", size, class, at, d.Waits, at.Std()+d.Waits)
			_, _ = fmt.Fprintf(&text, ", in the window from %s to %s; its frame takes %s\nbecause %s\n", d.Window.Start, d.Window.End, d.Takes, d.Why)
			_, err = io.WriteString(cmd.OutOrStdout(), text.String())
			return err
		},
	}
	c.Flags().IntVar(&class, "class", schedule.Classes-1, "traffic class")
	c.Flags().Var(&size, "size", "payload of the packet")
	c.Flags().Var(&at, "at", "its transmission time, from the beginning of a cycle on")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
