// Command tables writes the verdicts of runs into a page: between the comments
// "table NAME" and "end NAME" it puts the tables of the run of the experiment NAME,
// judged anew from its samples: no verdict and no rate in docs/reproduction.md is typed. Of a
// file that ends in .json, of `skerry proxy simulate --json`, it puts the table "simulated".
// Start at fill.
//
//	go run ./test/tables docs/reproduction.md results/DIR...
//	go run ./test/tables docs/proxy.md simulated.json
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/markdown"
	"skerry.dev/skerry/lab/run"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "tables: error: %v\n", err)
		os.Exit(1)
	}
}

// write replaces the page whole, or not at all.
func write(args []string) error {
	if len(args) < 2 {
		return errors.New("wants a page and at least one run")
	}
	old, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	text := string(old)
	for _, dir := range args[1:] {
		if strings.HasSuffix(dir, ".json") {
			if text, err = fillSimulated(text, dir); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			continue
		}
		input, err := run.Collect(dir)
		if err != nil {
			return err
		}
		if text, err = fill(text, input); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	return replace(args[0], text)
}

// replace puts a text in place of that of a file, with the same rights.
func replace(path, text string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return whole.Write(path, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// fill replaces what stands between the comments of the experiment.
func fill(text string, in report.Input) (string, error) {
	return markdown.Put(text, in.Experiment.Name, table(in))
}

// table is what a run says of each claim, below a line that says which run, and what its
// systems answered a second where loads go on for a time.
func table(in report.Input) string {
	var b strings.Builder
	least, most := repetitions(in.Results)
	times := fmt.Sprintf("%d repetitions", most)
	if least < most {
		times = fmt.Sprintf("%d to %d repetitions", least, most)
	}
	p := in.Provenance
	fmt.Fprintf(&b, "%s of %d cells on %s, commit %.7s, seed %d, %d cores, %s, links by %s:\n\n",
		times, len(in.Results), p.Started.Format("2 January 2006"), p.Commit, p.Seed, p.Cores, p.Kernel, p.Backend)
	b.WriteString("| claim | says | verdict | seen |\n|---|---|---|---|\n")
	for _, c := range in.Claims {
		says := c.Statement
		if c.Paper != "" {
			says += " (" + c.Paper + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, cell(says), c.Result, cell(c.Effect))
	}
	if rates := markdown.RatesOf(in.Results).String(); rates != "" {
		b.WriteString("\n" + rates)
	}
	return b.String()
}

// cell keeps a text in its column.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

// repetitions are the fewest and the most of a cell that was run and not rejected.
func repetitions(results []report.Result) (least, most int) {
	least = math.MaxInt
	for _, r := range results {
		if r.Rejected == "" && r.Lacks == "" {
			least, most = min(least, len(r.PerRepetition)), max(most, len(r.PerRepetition))
		}
	}
	return least, most
}
