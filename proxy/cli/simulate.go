package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/proxy/balance/sim"
)

// seedsMost bounds a simulation: a hundred of all cases are an hour of a core.
const seedsMost = 100

func simulateCommand() *cobra.Command {
	var delays []time.Duration
	var cases, policies []string
	var seeds int
	var asJSON bool
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Play the policies against each other in made-up time",
		Long: `Simulate plays cases of a cluster of four workers with two cores each, whose requests
take 1.33 ms and two round trips: the 16 of Table 2 of the Resource Adaptive Proxy's
paper, by the concurrent requests on each worker, and four that it lacks. Printed are
the medians over the seeds of the requests served a second and of the 99th percentile of
their response times. The oracle knows all that is under way and sends each request
where it will be answered first, which is the best for that one and not for all.

Equal seeds give equal results. A seed of all cases takes about half a minute of a core.`,
		Example: `  skerry proxy simulate --case 32:0:0:0 --delay 3ms,10ms
  skerry proxy simulate --seeds 20 --json > table.json`,
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 || seeds > seedsMost {
				return console.Usage(fmt.Errorf("--seeds %d is not between 1 and %d", seeds, seedsMost), "")
			}
			columns, err := chosen(sim.Columns(), policies, "policy", func(c sim.Column) string { return c.Name })
			if err != nil {
				return err
			}
			var all []sim.Case
			for _, d := range delays {
				if d < 0 || d > time.Second {
					return console.Usage(fmt.Errorf("--delay %v is not between 0 and 1s", d), "")
				}
				some, err := chosen(sim.Cases(d), cases, "case", func(c sim.Case) string { return c.Name })
				if err != nil {
					return err
				}
				all = append(all, some...)
			}
			rows, err := sim.Table(all, columns, seeds)
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, documents(rows, columns))
			}
			return printTable(cmd.OutOrStdout(), rows, columns)
		},
	}
	f := c.Flags()
	f.DurationSliceVar(&delays, "delay", []time.Duration{3 * time.Millisecond, 10 * time.Millisecond}, "round trips between workers")
	f.StringSliceVar(&cases, "case", nil, "cases by their names (default all)")
	f.StringSliceVar(&policies, "policy", nil, "policies by their names (default all)")
	f.IntVar(&seeds, "seeds", 1, "how often, each time by other chances")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// chosen are those of the names, all where none is named.
func chosen[T any](all []T, names []string, what string, name func(T) string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var some []T
	for _, n := range names {
		i := slices.IndexFunc(all, func(v T) bool { return name(v) == n })
		if i < 0 {
			var known []string
			for _, v := range all {
				known = append(known, name(v))
			}
			return nil, console.Usage(fmt.Errorf("there is no %s %q", what, n), nearest.Hint(n, known))
		}
		some = append(some, all[i])
	}
	return some, nil
}

// document is a case as it is printed for programs.
type document struct {
	Case     string            `json:"case"`
	DelayNs  time.Duration     `json:"delayNs"`
	Policies map[string]result `json:"policies"`
}

type result struct {
	GoodputPerSecond float64       `json:"goodputPerSecond"`
	FailedPerSecond  float64       `json:"failedPerSecond"`
	MeanNs           time.Duration `json:"meanNs"`
	P99Ns            time.Duration `json:"p99Ns"`
	ByWorker         []float64     `json:"byWorker"`
}

func documents(rows []sim.Row, columns []sim.Column) []document {
	var all []document
	for _, r := range rows {
		d := document{Case: r.Case.Name, DelayNs: r.Case.Delay, Policies: map[string]result{}}
		for i, c := range columns {
			v := r.Results[i]
			d.Policies[c.Name] = result{v.Goodput, v.Failed, v.Mean, v.P99, v.ByNode}
		}
		all = append(all, d)
	}
	return all
}

// printTable prints for people: a line a case, with requests a second and p99 in ms.
func printTable(out io.Writer, rows []sim.Row, columns []sim.Column) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := []string{"CASE", "DELAY"}
	for _, c := range columns {
		head = append(head, strings.ToUpper(c.Name))
	}
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range rows {
		line := []string{r.Case.Name, r.Case.Delay.String()}
		for _, v := range r.Results {
			line = append(line, fmt.Sprintf("%.0f/s %.1fms", v.Goodput, v.P99.Seconds()*1e3))
		}
		_, _ = fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
