package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
)

const reportFile = "report.html"

// runFlags are the flags of run.
type runFlags struct {
	out, systems, backend string
	json                  bool
}

func (c *commands) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment: every cell over emulated links, then a table and a page",
		Long: `Run takes a lab up on this machine, runs every cell of the experiment in a
random, interleaved order, each repetition with fresh processes and connections,
and takes the lab down again. It ends with a table on stdout and the path of the
page. Needs root, for network namespaces. Ctrl-C keeps what is complete.

Exit status: 0 done, 1 failed or an objective was missed, 2 wrong file or usage.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.runFile(cmd, args[0], f) },
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "run directory (default: runs/NAME-DATE-TIME)")
	cmd.Flags().StringVar(&f.systems, "systems", "", "folder of system plug-ins (default: those built in)")
	cmd.Flags().StringVar(&f.backend, "links", emulator.Auto, "link back end: auto, netem or userspace")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the table as JSON")
	return cmd
}

func (c *commands) runFile(cmd *cobra.Command, file string, f runFlags) error {
	s, err := read(file, f.systems)
	if err != nil {
		return err
	}
	if err := checkBackend(f.backend); err != nil {
		return err
	}
	path, err := agent()
	if err != nil {
		return err
	}
	if err := errors.Join(s.missing(), s.notRunnable(runtime.NumCPU())); err != nil {
		return err
	}
	if f.out == "" {
		f.out = runDir(s.Name, c.now())
	}
	progress := run.Lines{W: c.env.Stderr, Terminal: isTerminal(c.env.Stderr)}
	if err := cleanBefore(cmd, progress); err != nil {
		return err
	}
	seed := s.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	err = run.Run(cmd.Context(), run.Options{
		Experiment: s.Experiment, Plugins: s.plugins, Agent: path, Backend: f.backend,
		Dir: f.out, Seed: seed, LabName: fmt.Sprintf("run-%d", os.Getpid()),
		Version: c.env.Version, Command: slices.Concat([]string{"skerry"}, c.env.Args),
		Progress: progress, Now: c.now,
	})
	if interrupted, ok := errors.AsType[*run.InterruptedError](err); ok && interrupted.Done > 0 {
		return interruptedError{err, f.out}
	}
	if err != nil {
		return err
	}
	return c.show(cmd, f.out, f.json)
}

// interruptedError is an interrupted run that has left something to see.
type interruptedError struct {
	error
	dir string
}

// cleanBefore removes what killed runs left, and says so.
func cleanBefore(cmd *cobra.Command, progress run.Progress) error {
	removed, err := host.Clean(cmd.Context())
	for _, name := range removed {
		progress.Note("removed lab " + name + ", which a killed run had left")
	}
	return err
}

// show writes the page of a run directory, prints its table, and fails when an
// objective was missed.
func (c *commands) show(cmd *cobra.Command, dir string, asJSON bool) error {
	input, err := run.Collect(dir)
	if err != nil {
		return err
	}
	page := filepath.Join(dir, reportFile)
	if err := writeFile(page, func(w io.Writer) error { return report.HTML(w, input) }); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	out := cmd.OutOrStdout()
	if asJSON {
		err = report.JSON(out, input)
	} else {
		err = report.Table(out, input, isTerminal(c.env.Stdout))
	}
	if err != nil {
		return err
	}
	if !asJSON {
		_, _ = fmt.Fprintf(out, "\nReport: %s\n", page)
	}
	for _, v := range input.Verdicts {
		if !v.Met {
			return errObjective
		}
	}
	return nil
}

// writeFile writes a file beside its place and renames it.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".skerry-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that matters is err
		}
	}()
	err = write(f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (c *commands) report() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "report DIR", Short: "Make the table and the page of a run directory anew from its samples",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.show(cmd, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	return cmd
}
