package runs

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
)

// exportBuffer keeps writes few: a run may have 10⁷ rows.
const exportBuffer = 1 << 18

func (c *commands) export() *cobra.Command {
	var asCSV, cells bool
	var out string
	cmd := &cobra.Command{
		Use:   "export DIR --csv",
		Short: "Write every request of a run, or its table, as CSV",
		Long: `Export writes a row for each request that a run recorded, warm-up and failed ones
included: its cell and the cell's factors, repetition, thread, connection, index on
the connection, and when it was due, sent and answered, in ns of one clock. With
--cells it writes a row for each cell: what the table of 'skerry report' shows, at
full precision. Rows are written as they are read, however many there are.`,
		Example: "  skerry export runs/quickstart-20260314-092653 --csv --out requests.csv\n  skerry export runs/quickstart-20260314-092653 --csv --cells",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !asCSV {
				return console.Usage(errors.New("export needs a format"), "add --csv")
			}
			write := func(w io.Writer) error { return exportRequests(w, args[0]) }
			if cells {
				write = func(w io.Writer) error { return exportCells(w, args[0]) }
			}
			if out != "-" {
				if err := console.CheckPlace(out); err != nil {
					return err
				}
				return console.WriteFile(out, func(w io.Writer) error { return buffered(w, write) })
			}
			err := buffered(cmd.OutOrStdout(), write)
			if errors.Is(err, unix.EPIPE) {
				return nil // who read has read enough
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "as CSV: the one format there is")
	cmd.Flags().BoolVar(&cells, "cells", false, "a row for each cell in place of each request")
	cmd.Flags().StringVarP(&out, "out", "o", "-", "file to write, - for stdout")
	return cmd
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, exportBuffer)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

func exportRequests(w io.Writer, dir string) error {
	// Nothing is written of what is no run.
	if _, err := run.ReadRecord(dir); err != nil {
		return err
	}
	rows, err := report.NewRequestsCSV(w)
	if err != nil {
		return err
	}
	if err := run.Each(dir, rows.Write); err != nil {
		return err
	}
	return rows.Flush()
}

func exportCells(w io.Writer, dir string) error {
	input, err := run.Collect(dir)
	if err != nil {
		return err
	}
	if err := report.CellsCSV(w, input); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}
