package runs

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report/compare"
	"skerry.dev/skerry/lab/run"
)

// compareSeed makes the same two runs give the same figures.
const compareSeed = 0x636f6d70617265 // "compare"

// resolutionDefault is the tolerance of a link's proof, and about twice what
// medians without a link were seen to move by from run to run.
const resolutionDefault = quantity.Duration(100 * time.Microsecond)

// compareFlags are the flags of compare.
type compareFlags struct {
	margin, alpha quantity.Fraction
	resolution    quantity.Duration
	json          bool
	html          string
}

func (c *commands) compare() *cobra.Command {
	f := compareFlags{margin: 0.05, alpha: 0.01, resolution: resolutionDefault}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Say what changed from one run to another, beyond noise",
		Long: `Compare sets the cells of run directory B against the same cells of A: medians,
their ratio and by how many µs they are apart, by how many µs the quartiles of B are
further apart (jitter), each with a 95% interval, the p-value adjusted for the number
of cells, and the noise floor of A. What else differs between the runs (kernel,
versions, links) comes first, since it may be the cause. Of a run on hosts and one on
kubernetes a sentence says what Kubernetes adds.

A cell is slower or faster where chance explains the difference with a probability
of at most --alpha over all cells together, it is beyond the noise floor, and the
medians differ by --resolution at least: less than that the state of a machine
moves a whole run by. Five repetitions or more are needed; the table says how many
for so many cells. A cell has more errors where no request is answered in B and
some are in A, or where a larger share of requests fails, likewise beyond chance.

Exit status: 0 done, 1 failed, a cell is slower by more than --margin or has more
errors, or the runs have no cell in common, 2 usage.`,
		Example: "  skerry compare runs/before runs/after\n  skerry compare runs/before runs/after --margin 10% --html compare.html\n  skerry compare runs/hosts runs/pods --resolution 0",
		Args:    console.Exactly(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.compareRuns(cmd, args[0], args[1], f) },
	}
	cmd.Flags().Var(&f.margin, "margin", "how much slower a cell may become")
	cmd.Flags().Var(&f.alpha, "alpha", "probability with which runs that do not differ may show a difference")
	cmd.Flags().Var(&f.resolution, "resolution", "least difference of medians that is called one")
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Flags().StringVar(&f.html, "html", "", "write a page to this file as well")
	return cmd
}

func (c *commands) compareRuns(cmd *cobra.Command, a, b string, f compareFlags) error {
	if f.alpha <= 0 || f.alpha >= 1 {
		return console.Usage(fmt.Errorf("--alpha %s leaves nothing to decide", f.alpha), "write for example --alpha 1%")
	}
	if err := console.CheckPlace(f.html); err != nil {
		return err
	}
	var sides []compare.Side
	for _, dir := range []string{a, b} {
		input, err := run.Collect(dir)
		if err != nil {
			return err
		}
		sides = append(sides, compare.Side{Name: dir, Input: input})
	}
	o := compare.Options{Rule: measure.Rule{Alpha: float64(f.alpha), Resolution: float64(f.resolution)}, Margin: float64(f.margin)}
	compared := compare.Runs(sides[0], sides[1], o, rand.New(rand.NewPCG(compareSeed, 0)))
	if f.html != "" {
		if err := console.WriteFile(f.html, func(w io.Writer) error { return compare.HTML(w, compared) }); err != nil {
			return fmt.Errorf("write comparison: %w", err)
		}
	}
	if err := c.printComparison(cmd.OutOrStdout(), compared, f.json); err != nil {
		return err
	}
	return worse(compared, f.margin)
}

// worse is the error where cells became slower than may be, or fail more, and where there
// are none to tell by. It has been told in full on stdout.
func worse(c compare.Comparison, margin quantity.Fraction) error {
	if len(c.Cells) == 0 {
		return console.Advised("nothing was compared", "the runs have no cell in common: 'only in' names those of each, "+
			"and a cell is another where its links, system, workload or load are")
	}
	var said []string
	if n := len(c.Slower()); n > 0 {
		said = append(said, fmt.Sprintf("%s slower past the margin of %s", console.Count(n, "cell"), margin))
	}
	if n := len(c.Failing()); n > 0 {
		said = append(said, console.Count(n, "cell")+" with more errors")
	}
	if len(said) == 0 {
		return nil
	}
	return console.Advised(strings.Join(said, ", "), "the verdicts in the table say which, and 'differs' above it what else has changed")
}

func (c *commands) printComparison(w io.Writer, compared compare.Comparison, asJSON bool) error {
	if asJSON {
		return compare.JSON(w, compared)
	}
	return compare.Table(w, compared, console.IsTerminal(c.env.Stdout))
}
