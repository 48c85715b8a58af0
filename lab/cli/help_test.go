package cli_test

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/cli"
	"skerry.dev/skerry/lab/cli/verb"
)

// leaves are the verbs that do something, at any depth.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		switch {
		case !sub.IsAvailableCommand():
		case sub.HasSubCommands():
			all = append(all, leaves(sub)...)
		default:
			all = append(all, sub)
		}
	}
	return all
}

// word is one of a command line, quoted or not.
var word = regexp.MustCompile(`'[^']*'|[^ ]+`)

// Every verb has an example, and each line of one is a command line that Skerry takes.
func TestExamples(t *testing.T) {
	for _, verb := range leaves(cli.Root(verb.Env{})) {
		if !strings.Contains(verb.Example, "  "+verb.CommandPath()) {
			t.Errorf("%s has no example", verb.CommandPath())
		}
		for line := range strings.Lines(verb.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			args, ours := strings.CutPrefix(line, "skerry ")
			if !ours {
				continue
			}
			var words []string
			for _, w := range word.FindAllString(args, -1) {
				words = append(words, strings.Trim(w, "'"))
			}
			if err := understood(words); err != nil {
				t.Errorf("%s: %q: %v", verb.CommandPath(), line, err)
			}
		}
	}
}

// understood reads a command line without carrying it out.
func understood(words []string) error {
	root := cli.Root(verb.Env{})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	cmd, rest, err := root.Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return err
}
