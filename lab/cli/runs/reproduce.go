package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/experiments"
	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cli/progress"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
)

const (
	experimentSuffix = ".yaml"
	// fullSuffix ends the name of an experiment in full length, which takes days:
	// it is run by that name alone.
	fullSuffix = "-full"
	// repetitionsLeast can be judged: one says nothing of how they differ.
	repetitionsLeast = 2
	// spreadAssumed is by how much repetitions differ on a quiet host, before any
	// is measured.
	spreadAssumed = 0.01
)

// reproduceFlags are the flags of reproduce.
type reproduceFlags struct {
	runFlags
	budget      quantity.Duration
	experiments string
}

func (c *commands) reproduce() *cobra.Command {
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "reproduce [ID...]",
		Short: "Run experiments that Skerry ships and judge their claims; list them without ID",
		Long: `Reproduce runs each experiment as 'skerry run' does, one after the other, and
judges the claims in its file. An ID names one, or the first words of several:
crt-direct is crt-direct-f3, crt-direct-t3-cloud and so on, but for those that end in
-full, which take days. With --budget it repeats as often as fits that
time by 'skerry plan', for all experiments together, at least twice and at most
as often as the files say, and tells which difference so many repetitions can
resolve. The time is that of measuring on a quiet host; a run takes longer.

An experiment that cannot run on this machine is named with what is missing, and
the others go on.

Exit status: 0 done, 1 a claim or an objective failed, a run failed, or no
experiment could run; 2 wrong usage.`,
		Example: "  skerry reproduce\n  skerry reproduce quickstart --budget 1m\n  skerry reproduce CRT-direct INL --budget 45m",
		RunE: func(cmd *cobra.Command, ids []string) error {
			tree, err := experimentTree(f.experiments)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return listExperiments(cmd, tree)
			}
			return c.reproduceAll(cmd, tree, ids, f)
		},
	}
	cmd.Flags().Var(&f.budget, "budget", "time for all experiments together (default: as the files say)")
	cmd.Flags().StringVar(&f.experiments, "experiments", "", "folder of experiment files (default: those built in)")
	f.add(cmd, "run directory; of several experiments, the folder of theirs", "results among them")
	return cmd
}

// experimentTree is where experiments come from: the folder asked for, or those
// that are built in.
func experimentTree(dir string) (fs.FS, error) {
	if dir == "" {
		return experiments.FS, nil
	}
	tree := os.DirFS(dir)
	if ids, err := experimentIDs(tree); err != nil || len(ids) == 0 {
		return nil, console.Usage(errors.Join(fmt.Errorf("folder %s holds no experiment", dir), err), "--experiments takes a folder of experiment files, NAME.yaml")
	}
	return tree, nil
}

// experimentIDs lists the names of the files, which are those of the experiments.
func experimentIDs(tree fs.FS) ([]string, error) {
	files, err := fs.Glob(tree, "*"+experimentSuffix)
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], experimentSuffix)
	}
	return files, err
}

func listExperiments(cmd *cobra.Command, tree fs.FS) error {
	ids, err := experimentIDs(tree)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tCELLS\tREPETITIONS\tTIME\tCLAIMS\tDESCRIPTION")
	for _, id := range ids {
		data, err := fs.ReadFile(tree, id+experimentSuffix)
		if err != nil {
			return err
		}
		e, err := experiment.Read(id+experimentSuffix, data)
		if err != nil {
			return console.Usage(err, "")
		}
		takes := seconds(once(source.File{Experiment: e}) * float64(e.Repetitions))
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%s\n", id, len(e.Cells()), e.Repetitions, takes, len(e.Claims), console.Dash(e.Description))
	}
	return w.Flush()
}

// once is how long one repetition of every cell takes on a quiet host, in
// seconds.
func once(s source.File) (sum float64) {
	for _, cell := range s.Cells() {
		sum += s.Estimate(cell, s.Paths[cell.System]...).Seconds()
	}
	return sum
}

func seconds(s float64) time.Duration {
	return time.Duration(min(math.Ceil(s)*1e9, math.MaxInt64))
}

func (c *commands) reproduceAll(cmd *cobra.Command, tree fs.FS, ids []string, f reproduceFlags) error {
	sources, err := shipped(tree, ids, f.systems)
	if err != nil {
		return err
	}
	if err := verb.CheckBackend(f.backend); err != nil {
		return err
	}
	asked := make([]int, len(sources))
	for i, s := range sources {
		asked[i] = s.Repetitions
	}
	if f.budget > 0 {
		if err := fit(sources, f.budget.Std()); err != nil {
			return err
		}
	}
	var judged, lacking []error
	for i, s := range sources {
		_, _ = fmt.Fprintln(c.env.Stderr, forecast(s, asked[i]))
		flags := f.runFlags
		switch {
		case flags.out == "":
			flags.out = runDir(s.Name, c.now())
		case len(sources) > 1:
			flags.out = filepath.Join(flags.out, s.Name)
		}
		err := c.reproduceOne(cmd, s, flags)
		switch {
		case errors.Is(err, errClaim), errors.Is(err, errObjective):
			judged = append(judged, fmt.Errorf("%s: %w", s.Name, err))
		case cmd.Context().Err() == nil && notHere(err):
			c.tellLacking(cmd, fmt.Sprintf("%s: not runnable here: %s", s.Name, strings.ReplaceAll(err.Error(), "\n", "; ")), s, f.json)
			lacking = append(lacking, err)
		case err != nil:
			return errors.Join(append(judged, err)...)
		}
	}
	if len(lacking) == len(sources) {
		return errors.Join(lacking...)
	}
	return errors.Join(judged...)
}

// tellLacking names an experiment that cannot run, as a result like the others'.
func (c *commands) tellLacking(cmd *cobra.Command, text string, s source.File, asJSON bool) {
	if asJSON {
		progress.New(c.env, c.now, s.Cells(), asJSON).Note(text)
		return
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout(), text)
}

// notHere reports an error that is a lack of this machine, not of the run.
func notHere(err error) bool {
	return errors.Is(err, experiment.ErrNotRunnable) || errors.Is(err, gobuild.ErrNoGo) ||
		is[*system.MissingError](err) || is[*system.QdiscError](err) ||
		is[*program.MissingError](err) || is[*broker.MissingError](err) || preflight.Refused(err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// named are the experiments that an id means: the one of that name, else those
// whose names it begins.
func named(id string, known []string) (names []string) {
	id = strings.ToLower(id) // the papers' rows are written CRT-F3
	if slices.Contains(known, id) {
		return []string{id}
	}
	for _, name := range known {
		if strings.HasPrefix(name, id+"-") && !strings.HasSuffix(name, fullSuffix) {
			names = append(names, name)
		}
	}
	return names
}

// shipped reads the experiments of the ids, each named once.
func shipped(tree fs.FS, ids []string, systemsDir string) ([]source.File, error) {
	known, err := experimentIDs(tree)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range ids {
		all := named(id, known)
		if len(all) == 0 {
			return nil, console.Usage(fmt.Errorf("there is no experiment %q", id), nearest.Hint(strings.ToLower(id), known))
		}
		names = append(names, all...)
	}
	var sources []source.File
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, console.Usage(fmt.Errorf("experiment %s is named twice", name), "name it once")
		}
		data, err := fs.ReadFile(tree, name+experimentSuffix)
		if err != nil {
			return nil, err
		}
		s, err := source.Parse(name+experimentSuffix, data, systemsDir)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// fit lowers the repetitions of the experiments to what the budget has time
// for: the least of each first, then one more of that with the smallest share of
// its own, as long as one fits.
func fit(sources []source.File, budget time.Duration) error {
	asked, costs := make([]int, len(sources)), make([]float64, len(sources))
	var spent float64
	for i, s := range sources {
		asked[i], costs[i] = s.Repetitions, once(s)
		s.Repetitions = min(asked[i], repetitionsLeast)
		spent += costs[i] * float64(s.Repetitions)
	}
	if spent > budget.Seconds() {
		least := seconds(spent)
		return console.Usage(fmt.Errorf("the budget of %s is too short: the least repetitions take about %s", budget, least),
			fmt.Sprintf("give --budget %s or more, or name fewer experiments", least))
	}
	for {
		next := -1
		for i, s := range sources {
			fits := s.Repetitions < asked[i] && spent+costs[i] <= budget.Seconds()
			share := float64(s.Repetitions) / float64(asked[i])
			if fits && (next < 0 || share < float64(sources[next].Repetitions)/float64(asked[next])) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		sources[next].Repetitions++
		spent += costs[next]
	}
}

// forecast says what is run of an experiment, what was cut, and what so many
// repetitions are good for.
func forecast(s source.File, asked int) string {
	text := fmt.Sprintf("[%s] %s of %s, about %s", s.Name, console.Count(s.Repetitions, "repetition"), console.Count(len(s.Cells()), "cell"),
		seconds(once(s)*float64(s.Repetitions)))
	if s.Repetitions < asked {
		text += fmt.Sprintf(", cut from %d by the budget", asked)
	}
	return text + "; " + power(s.Repetitions, spreadAssumed)
}

// power says which difference repetitions with a spread resolve.
func power(repetitions int, spread float64) string {
	if repetitions < repetitionsLeast {
		return "1 repetition resolves nothing"
	}
	return fmt.Sprintf("%s resolve a difference of about %.2g %%, if they spread by %.2g %%",
		console.Count(repetitions, "repetition"), 100*measure.Resolves(repetitions, spread), 100*spread)
}

// reproduceOne runs an experiment, shows it, and tells what its repetitions were
// good for.
func (c *commands) reproduceOne(cmd *cobra.Command, s source.File, f runFlags) error {
	options, err := c.prepare(cmd, s, f)
	if err != nil {
		return err
	}
	if err := kept(run.Run(cmd.Context(), options), f.out); err != nil {
		return err
	}
	input, err := c.page(cmd, f.out, output{event: f.json})
	if err != nil {
		return err
	}
	if spread, ok := spreadOf(input.Results); ok {
		_, _ = fmt.Fprintf(c.env.Stderr, "[%s] as measured, %s\n", s.Name, power(s.Repetitions, spread))
	}
	return missed(input)
}

// spreadOf is the median spread of the cells that have one.
func spreadOf(results []report.Result) (spread float64, ok bool) {
	var all []float64
	for _, r := range results {
		if r.Values != nil && r.Values.Len() >= repetitionsLeast {
			all = append(all, r.Values.Spread())
		}
	}
	return measure.Sort(all).Median(), len(all) > 0
}
