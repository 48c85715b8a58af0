// Package cli is the lab's command line: it parses, asks the lab's packages and
// prints. It decides nothing about links, systems or figures. Start at Execute;
// each verb is a file.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/systems"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Env is what the command line takes from its process.
type Env struct {
	Version               string
	Args                  []string
	Stdin, Stdout, Stderr *os.File
}

// usageError is a wrong command line or a wrong file: nothing was started.
type usageError struct {
	error
	// remedy is what to do; it may be empty.
	remedy string
}

func (e usageError) Unwrap() error { return e.error }

// errObjective says that the run was completed and an objective was missed. It
// has been told in full on stdout.
var errObjective = errors.New("an objective was missed")

// errClaim says that a claim fails; those that do are named behind it.
var errClaim = errors.New("a claim fails")

// Execute runs one command line and returns the exit status.
func Execute(ctx context.Context, env Env) int {
	root := Root(env)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return status.status
	}
	explain(env.Stderr, err)
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return exitFailed
}

// Root is the command that holds every verb.
func Root(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "skerry",
		Short: "An edge-networking lab: how does a service answer across these sites, over these links?",
		Long: `Skerry emulates clusters and the links between them on this machine, runs a
service and its load across them through the systems that you choose, and shows
what it measured as a table and a page.

Begin with:  skerry run experiments/quickstart.yaml`,
		Version:           env.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              knownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{err, seeHelp(cmd)} })
	for _, group := range []*cobra.Group{{ID: "experiment", Title: "Experiments:"}, {ID: "lab", Title: "Labs by hand:"}} {
		root.AddGroup(group)
	}
	c := &commands{env: env, now: time.Now}
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			root.AddCommand(v)
		}
	}
	add("experiment", c.run(), c.status(), c.validate(), c.plan(), c.report(), c.compare(), c.export(), c.importSamples(), c.systems(), c.doctor())
	add("experiment", c.reproduce())
	add("lab", c.up(), c.ps(), c.exec(), c.shell(), c.logs(), c.link(), c.fault(), c.capture(), c.down())
	add("lab", c.kubeconfig(), c.loadImage(), c.kube())
	root.AddCommand(c.gen())
	return root
}

// knownVerb refuses what is not a verb of the command.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownVerb(cmd, args[0])
	}
	return nil
}

func unknownVerb(cmd *cobra.Command, name string) error {
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	remedy := seeHelp(cmd)
	if near, ok := nearest.Word(name, verbs); ok {
		remedy = "did you mean '" + cmd.CommandPath() + " " + near + "'?"
	}
	return usageError{fmt.Errorf("%s knows no command %q", cmd.CommandPath(), name), remedy}
}

func seeHelp(cmd *cobra.Command) string {
	return "'" + cmd.CommandPath() + " --help' shows what it takes"
}

// wantsArgs says that the arguments do not fit.
func wantsArgs(cmd *cobra.Command, got int) error {
	return usageError{
		fmt.Errorf("%s does not take %s", cmd.CommandPath(), count(got, "argument")), "usage: " + cmd.UseLine(),
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// commands makes the verbs.
type commands struct {
	env Env
	now func() time.Time
}

// exactly is cobra.ExactArgs with an error that says what was meant.
func exactly(n int) cobra.PositionalArgs { return within(n, n) }

// within takes so many arguments at least and at most.
func within(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return wantsArgs(cmd, len(args))
		}
		return nil
	}
}

// agent finds skerry-agent: beside this program, which is where make puts it.
func agent() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find skerry-agent: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), "skerry-agent")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: there is no %s", errNoAgent, path)
	}
	return path, nil
}

var errNoAgent = errors.New("cannot find skerry-agent beside skerry")

// systemTree is where plug-ins come from: the folder asked for, or those that
// are built in.
func systemTree(dir string) (fs.FS, error) {
	if dir == "" {
		return systems.FS, nil
	}
	tree := os.DirFS(dir)
	if names, err := system.Names(tree); err != nil || len(names) == 0 {
		return nil, usageError{
			errors.Join(fmt.Errorf("folder %s holds no system", dir), err),
			"--systems takes a folder of folders, each with a system.yaml",
		}
	}
	return tree, nil
}

// checkBackend refuses a link back end that there is not.
func checkBackend(name string) error {
	known := []string{emulator.Auto, emulator.Netem, emulator.Userspace}
	if !slices.Contains(known, name) {
		return usageError{fmt.Errorf("no link back end %q", name), nearest.Hint(name, known)}
	}
	return nil
}

// printJSON prints a document for programs.
func printJSON(cmd *cobra.Command, document any) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
