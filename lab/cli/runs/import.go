package runs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/sample"
)

// labelsMax bounds the cells that files make: more labels are not names.
const labelsMax = 1000

// importFlags are the flags of import.
type importFlags struct{ out, scenario, system string }

func (c *commands) importSamples() *cobra.Command {
	f := importFlags{}
	cmd := &cobra.Command{
		Use:   "import FILE... -o DIR",
		Short: "Make a run directory of JMeter's results, to show and compare them",
		Long: `Import reads result files of JMeter as CSV, with the header and the columns that
JMeter writes by default, each as one repetition, and makes a run directory of
them: a cell for each label of a sampler. 'skerry report', 'export' and 'compare'
take it like any other, but that an imported cell has no links, so that 'compare' sets
imports against imports alone. It needs the columns timeStamp and elapsed; label,
threadName, responseCode, success, Latency and Connect are used where they are
there. A request opens a connection where it is its thread's first, or where
JMeter saw a dial of 1 ms at least.

A file with a row that is not as JMeter writes it is refused, with the line.`,
		Example: "  skerry import results-1.csv results-2.csv -o runs/before --scenario edg10\n  skerry import after-*.csv -o runs/after --scenario edg10\n  skerry compare runs/before runs/after",
		Args:    console.Some(),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.importFiles(cmd, args, f) },
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "run directory to make")
	cmd.Flags().StringVar(&f.scenario, "scenario", "imported", "scenario that the files are of")
	cmd.Flags().StringVar(&f.system, "system", "imported", "system that the files are of")
	return cmd
}

func (c *commands) importFiles(cmd *cobra.Command, files []string, f importFlags) error {
	if f.out == "" {
		return console.Usage(errors.New("import needs a run directory to make"), "add --out DIR")
	}
	i := run.Imported{
		Scenario: f.scenario, System: f.system, Tool: experiment.ToolJMeter,
		Workloads: map[string][][]sample.Request{},
		Version:   c.env.Version, Command: slices.Concat([]string{"skerry"}, c.env.Args),
	}
	var requests, failed int
	for _, file := range files {
		rows, err := readJMeter(file)
		if err != nil {
			return err
		}
		byLabel := map[string][]sample.Request{}
		for _, row := range rows {
			byLabel[row.Label] = append(byLabel[row.Label], row.Request)
			if row.Error != "" {
				failed++
			}
			if began := time.Unix(0, row.ScheduledNs); i.Began.IsZero() || began.Before(i.Began) {
				i.Began = began
			}
		}
		requests += len(rows)
		for label, rows := range byLabel {
			i.Workloads[label] = append(i.Workloads[label], rows)
		}
		if len(i.Workloads) > labelsMax {
			return console.Usage(fmt.Errorf("%s: more than %d labels", file, labelsMax), "name samplers alike whose requests are of one kind")
		}
	}
	if requests == 0 {
		return console.Usage(errors.New("the files hold no request"), "JMeter writes a row for each beneath the header")
	}
	if err := run.Import(f.out, i); err != nil {
		return err
	}
	cmd.Printf("read %s of %s from %s, %d failed: %s\n",
		console.Count(requests, "request"), console.Count(len(i.Workloads), "label"), console.Count(len(files), "file"), failed, f.out)
	return nil
}

// readJMeter reads one file. Its times stay on its own clock.
func readJMeter(file string) ([]adapter.Labelled, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, console.Usage(fmt.Errorf("there is no file %s", file), "name a CSV file that JMeter wrote")
	}
	if err != nil {
		return nil, console.Usage(err, "")
	}
	defer func() { _ = f.Close() }() // it is only read
	rows, err := adapter.ReadJMeter(bufio.NewReader(f), adapter.Moment{})
	if wrong, ok := errors.AsType[*adapter.OutputError](err); ok {
		return nil, console.Usage(fmt.Errorf("%s: %w", file, wrong), "'skerry import --help' says which columns it reads")
	}
	return rows, err
}
