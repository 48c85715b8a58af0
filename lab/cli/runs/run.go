package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/programs"
	"skerry.dev/skerry/lab/cli/progress"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/run"
)

// runFlags are the flags of run, and but for resume of reproduce.
type runFlags struct {
	out, systems, backend, resume string
	repetitions                   int // where given
	json                          bool
}

// add defines them, with what --out and --json say of the command.
func (f *runFlags) add(cmd *cobra.Command, out, json string) {
	cmd.Flags().StringVarP(&f.out, "out", "o", "", out)
	cmd.Flags().StringVar(&f.systems, "systems", "", "folder of system plug-ins (default: those built in)")
	cmd.Flags().StringVar(&f.backend, "links", emulator.Auto, "link back end: auto, netem or userspace")
	cmd.Flags().BoolVar(&f.json, "json", false, "print events, one JSON object a line, "+json)
}

func (c *commands) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE | --resume DIR [FILE]",
		Short: "Run an experiment: every cell over emulated links, then a table and a page",
		Long: `Run takes a lab up on this machine, runs every cell of the experiment in a
random, interleaved order, each repetition with fresh processes and connections,
and takes the lab down again. It ends with a table on stdout and the path of the
page. Needs root, for network namespaces. Ctrl-C keeps what is complete.

The links of each repetition are proven. One over a link that was not as asked, or
whose emulator fell behind, is tried again after all others, at most twice; then
its cell is rejected. On a terminal running medians follow the run.

With --resume DIR it goes on with the run in DIR that was interrupted, killed or
has failed: with the experiment, the seed and the order recorded there, without
the repetitions that are complete. Where all are, it prints the table. A FILE
must then say what is recorded, and --systems is given again where it was.

With --repetitions 1 it is a quick look at what the cells do: few claims are decided.

Exit status: 0 done, 1 failed, an objective was missed or a claim fails, 2 wrong
file or usage.`,
		Example: "  skerry run experiments/quickstart.yaml\n  skerry run experiments/quickstart.yaml --repetitions 1\n  skerry run --resume runs/quickstart-20260314-092653",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 0 && f.resume != "" {
				return nil
			}
			return console.WantsArgs(cmd, len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.resume != "" {
				return c.resume(cmd, args, f)
			}
			return c.runFile(cmd, args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.resume, "resume", "", "go on with the run in this directory")
	cmd.Flags().IntVar(&f.repetitions, "repetitions", 0, "run each cell so often (default: as the file says)")
	f.add(cmd, "run directory (default: runs/NAME-DATE-TIME)", "the result last")
	return cmd
}

func (c *commands) runFile(cmd *cobra.Command, file string, f runFlags) error {
	s, err := source.Read(file, f.systems)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("repetitions") {
		if err := repeat(s, f.repetitions); err != nil {
			return err
		}
	}
	if err := verb.CheckBackend(f.backend); err != nil {
		return err
	}
	if f.out == "" {
		f.out = runDir(s.Name, c.now())
	}
	options, err := c.prepare(cmd, s, f)
	if err != nil {
		return err
	}
	return c.finish(cmd, run.Run(cmd.Context(), options), f)
}

// repeat has each cell run n times, whatever the file says.
func repeat(s source.File, n int) error {
	if most := s.RepetitionsMost(); n < 1 || n > most {
		return console.Usage(fmt.Errorf("%d repetitions are not possible", n), fmt.Sprintf("--repetitions takes 1 to %d", most))
	}
	s.Repetitions = n
	return nil
}

// resume goes on with a run, or shows one that is complete.
func (c *commands) resume(cmd *cobra.Command, args []string, f runFlags) error {
	if f.out != "" {
		return console.Usage(errors.New("--resume and --out exclude each other"), "a run goes on in its own directory: leave --out out")
	}
	if cmd.Flags().Changed("repetitions") {
		return console.Usage(errors.New("--resume and --repetitions exclude each other"), "a run goes on as it began: leave --repetitions out")
	}
	f.out = f.resume
	status, err := run.Look(f.out)
	if err != nil {
		return err
	}
	record, err := run.ReadRecord(f.out)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if err := sameExperiment(args[0], f, record); err != nil {
			return err
		}
	}
	switch status.State {
	case run.Running:
		return fmt.Errorf("%w: %s", run.ErrRunning, f.out)
	case run.Complete:
		_, _ = fmt.Fprintf(c.env.Stderr, "%s is complete: all %s are there\n", f.out, console.Count(status.Total, "repetition"))
		return c.finish(cmd, run.Resume(cmd.Context(), run.Options{Dir: f.out}), f)
	}
	if f.backend, err = sameBackend(f.backend, record.Links.Backend); err != nil {
		return err
	}
	s, err := source.WithPlugins(record.Experiment, f.systems)
	if err != nil {
		return err
	}
	options, err := c.prepare(cmd, s, f)
	if err != nil {
		return err
	}
	return c.finish(cmd, run.Resume(cmd.Context(), options), f)
}

// sameExperiment refuses a file that says other than what is recorded.
func sameExperiment(file string, f runFlags, record run.Record) error {
	s, err := source.Read(file, f.systems)
	if err != nil {
		return err
	}
	given, err := json.Marshal(s.Experiment)
	if err != nil {
		return err
	}
	recorded, err := json.Marshal(record.Experiment)
	if err != nil {
		return err
	}
	if !bytes.Equal(given, recorded) {
		return console.Usage(fmt.Errorf("%s is not the experiment of %s", file, f.resume),
			"leave FILE out to go on with the recorded one, or run the file anew without --resume")
	}
	return nil
}

// sameBackend is the back end that the run began with; figures of two would not
// go together.
func sameBackend(asked, recorded string) (string, error) {
	if err := verb.CheckBackend(asked); err != nil {
		return "", err
	}
	if asked != emulator.Auto && asked != recorded {
		return "", console.Usage(fmt.Errorf("the run began with links by %s, not %s", recorded, asked), "leave --links out")
	}
	return recorded, nil
}

// prepare looks whether the experiment can run here, and makes its options. The
// seed is drawn where the file has none.
func (c *commands) prepare(cmd *cobra.Command, s source.File, f runFlags) (run.Options, error) {
	path, err := verb.Agent()
	if err != nil {
		return run.Options{}, err
	}
	lacks, err := s.NotRunnable(runtime.NumCPU())
	if err := errors.Join(s.Suited(), s.Missing(), err); err != nil {
		return run.Options{}, err
	}
	shown := progress.New(c.env, c.now, s.Cells(), f.json)
	if err := s.Build(cmd.Context(), shown.Note); err != nil {
		return run.Options{}, err
	}
	kubernetes, err := s.ClusterPrograms(cmd.Context(), programs.Builder(c.env, c.now), c.now())
	if err != nil {
		return run.Options{}, err
	}
	tools, err := s.Tools(cmd.Context(), lacks, shown.Note)
	if err != nil {
		return run.Options{}, err
	}
	brokers, err := s.Brokers(cmd.Context(), lacks)
	if err != nil {
		return run.Options{}, err
	}
	if err := cleanBefore(cmd, shown); err != nil {
		return run.Options{}, err
	}
	for _, cell := range s.Cells() {
		if why := lacks[cell.ID()]; why != "" {
			shown.Note(fmt.Sprintf("not run: %s: %s", cell, why))
		}
	}
	seed := s.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	return run.Options{
		Experiment: s.Experiment, Stacks: s.Stacks, Digests: s.Digests, NotRunnable: lacks, Found: run.Found{Tools: tools, Brokers: brokers, Kubernetes: kubernetes}, Agent: path, Backend: f.backend,
		Dir: f.out, Seed: seed, LabName: fmt.Sprintf("run-%d", os.Getpid()),
		Version: c.env.Version, Command: slices.Concat([]string{"skerry"}, c.env.Args),
		Progress: shown, Now: c.now,
	}, nil
}

// finish shows a run that ended well.
func (c *commands) finish(cmd *cobra.Command, err error, f runFlags) error {
	if err := kept(err, f.out); err != nil {
		return err
	}
	return c.show(cmd, f.out, output{event: f.json})
}

// kept tells of an interrupted run where its repetitions are.
func kept(err error, dir string) error {
	if interrupted, ok := errors.AsType[*run.InterruptedError](err); ok && interrupted.Done > 0 {
		return interruptedError{err, dir}
	}
	return err
}

// interruptedError is an interrupted run that has left something to see.
type interruptedError struct {
	error
	dir string
}

// Hint says how to go on.
func (e interruptedError) Hint() string {
	return "'skerry report " + e.dir + "' shows those, 'skerry run --resume " + e.dir + "' goes on"
}

// cleanBefore removes what killed runs left, and says so.
func cleanBefore(cmd *cobra.Command, shown run.Progress) error {
	removed, err := host.Clean(cmd.Context())
	for _, name := range removed {
		shown.Note("removed lab " + name + ", which a killed run had left")
	}
	return err
}
