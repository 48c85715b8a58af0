package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/cli/progress"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
)

// What a report is made of, in the run directory.
const (
	reportFile = "report.html"
	figuresDir = "figures"
)

// output is how a run is shown: as a table, as JSON or as the last event.
type output struct{ json, event, noFigures bool }

func (c *commands) report() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Make the table, the page and the figures of a run directory anew from its samples",
		Long: `Report reads the samples of a run directory and makes all figures anew: a table
on stdout, report.html in the directory, and figures/ beside it with every figure
as SVG and as PDF. The page needs no network and no other file. A run that goes
on or was interrupted is shown as far as it is.

Exit status: 0 done, 1 failed, an objective was missed or a claim fails, 2 usage.`,
		Example: "  skerry report runs/quickstart-20260314-092653",
		Args:    console.Exactly(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.show(cmd, args[0], o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the table as JSON")
	cmd.Flags().BoolVar(&o.noFigures, "no-figures", false, "leave figures/ as it is")
	return cmd
}

// show writes the page of a run directory, prints its table, and fails when an
// objective was missed or a claim fails.
func (c *commands) show(cmd *cobra.Command, dir string, o output) error {
	input, err := c.page(cmd, dir, o)
	if err != nil {
		return err
	}
	return missed(input)
}

// page writes the figures and the page of a run directory and prints its table.
func (c *commands) page(cmd *cobra.Command, dir string, o output) (report.Input, error) {
	input, err := run.Collect(dir)
	if err != nil {
		return report.Input{}, err
	}
	if !o.noFigures {
		if err := writeFigures(cmd.Context(), filepath.Join(dir, figuresDir), input); err != nil {
			return report.Input{}, fmt.Errorf("write figures: %w", err)
		}
	}
	page := filepath.Join(dir, reportFile)
	if err := console.WriteFile(page, func(w io.Writer) error { return report.HTML(w, input) }); err != nil {
		return report.Input{}, fmt.Errorf("write report: %w", err)
	}
	out := cmd.OutOrStdout()
	switch {
	case o.event:
		return input, progress.Result(out, c.now, input)
	case o.json:
		return input, report.JSON(out, input)
	}
	if err := report.Table(out, input, console.IsTerminal(c.env.Stdout)); err != nil {
		return report.Input{}, err
	}
	_, _ = fmt.Fprintf(out, "\nReport: %s\n", page)
	return input, nil
}

// writeFigures writes every figure as SVG and PDF into a folder that then takes
// the place of the one that was there.
func writeFigures(ctx context.Context, dir string, input report.Input) error {
	beside, err := os.MkdirTemp(filepath.Dir(dir), ".skerry-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(beside) }() // gone already where it was renamed
	figures, _ := report.Figures(input)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, f := range figures {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			stem := filepath.Join(beside, f.Name)
			if err := create(stem+".svg", f.WriteSVG); err != nil {
				return err // of a full disk the other would say the same
			}
			return create(stem+".pdf", f.WritePDF)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := os.Chmod(beside, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(beside, dir)
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// missed names in one line what the run did not keep; nil where it kept all.
func missed(input report.Input) error {
	var failed []string
	for _, j := range input.Claims {
		if j.Result == claim.Fails {
			failed = append(failed, j.Name)
		}
	}
	objective := slices.ContainsFunc(input.Verdicts, func(v report.Verdict) bool { return !v.Met })
	switch {
	case len(failed) > 0 && objective:
		return fmt.Errorf("%w, and %w: %s", errObjective, errClaim, strings.Join(failed, ", "))
	case len(failed) > 0:
		return fmt.Errorf("%w: %s", errClaim, strings.Join(failed, ", "))
	case objective:
		return errObjective
	}
	return nil
}
