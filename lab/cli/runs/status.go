package runs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/run"
)

var errNoRuns = console.Advised("there is no run under runs/", "name the directory that 'skerry run' wrote, such as runs/NAME-DATE-TIME")

func (c *commands) status() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [DIR]",
		Short: "Show where a run stands: what is done, what runs now, the time left, errors",
		Long: `Status reads a run directory, also while the run goes on, and disturbs nothing
but for the time that it takes to read the samples. Without DIR it takes the run
under runs/ that was last started, resumed or completed.

State: running, complete, or stopped (interrupted, killed or failed; 'skerry run
--resume DIR' goes on). Requests and errors are those of complete repetitions.`,
		Example: "  skerry status\n  skerry status runs/quickstart-20260314-092653 --json",
		Args:    console.Within(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := newestRun("runs")
			if len(args) == 1 {
				dir, err = args[0], nil
			}
			if err != nil {
				return err
			}
			status, err := run.Look(dir)
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, status)
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// newestRun is the directory in a folder whose run.json was written last.
func newestRun(folder string) (string, error) {
	records, err := filepath.Glob(filepath.Join(folder, "*", "run.json"))
	if err != nil {
		return "", err
	}
	var newest string
	var written time.Time
	for _, record := range records {
		info, err := os.Stat(record)
		if err == nil && info.ModTime().After(written) {
			newest, written = filepath.Dir(record), info.ModTime()
		}
	}
	if newest == "" {
		return "", errNoRuns
	}
	return newest, nil
}

func printStatus(w io.Writer, s run.Status) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		_, _ = fmt.Fprintf(table, key+"\t"+format+"\n", args...) // Flush tells
	}
	line("run", "%s", s.Dir)
	line("experiment", "%s", s.Experiment)
	line("state", "%s", s.State)
	line("done", "%d of %d repetitions", s.Done, s.Total)
	if s.Rejected > 0 {
		line("rejected", "%d of them: their links were not what was asked for", s.Rejected)
	}
	if s.Cell != "" {
		key := "next"
		if s.State == run.Running {
			key = "now"
		}
		line(key, "%s, repetition %d", s.Cell, s.Repetition)
		line("left", "about %s", time.Duration(s.LeftS*float64(time.Second)).Round(time.Second))
	}
	line("began", "%s", s.Began.Format(time.DateTime))
	for _, at := range s.Resumed {
		line("resumed", "%s", at.Format(time.DateTime))
	}
	line("errors", "%d of %s", s.Errors, console.Count(s.Requests, "request"))
	return table.Flush()
}
