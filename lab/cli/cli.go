// Package cli is the lab's command line: it parses, asks the lab's packages and
// prints. It decides nothing about links, systems or figures. The verbs are in
// packages by what they are about: runs, byhand and programs. Start at Execute.
package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/byhand"
	"skerry.dev/skerry/lab/cli/programs"
	"skerry.dev/skerry/lab/cli/runs"
	"skerry.dev/skerry/lab/cli/verb"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Execute runs one command line and returns the exit status. Parts are the commands of
// the other parts of Skerry, which the lab does not know.
func Execute(ctx context.Context, env verb.Env, parts ...*cobra.Command) int {
	root := Root(env, parts...)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[console.StatusError](err); ok {
		return status.Status
	}
	verb.Explain(env.Stderr, err)
	if _, usage := errors.AsType[console.UsageError](err); usage {
		return exitUsage
	}
	return exitFailed
}

// Root is the command that holds every verb.
func Root(env verb.Env, parts ...*cobra.Command) *cobra.Command {
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
		Args:              console.KnownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return console.Usage(err, console.SeeHelp(cmd)) })
	for _, group := range []*cobra.Group{{ID: "experiment", Title: "Experiments:"}, {ID: "lab", Title: "Labs by hand:"}, {ID: "part", Title: "Data plane:"}} {
		root.AddGroup(group)
	}
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			root.AddCommand(v)
		}
	}
	add("experiment", append(runs.Commands(env, time.Now), doctor(time.Now))...)
	add("lab", append(byhand.Commands(env, time.Now), programs.Command(env, time.Now))...)
	add("part", parts...)
	root.AddCommand(gen())
	return root
}
