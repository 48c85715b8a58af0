// Package console is what the command lines of Skerry's programs share: how arguments
// are counted, what a wrong command line or file is, and how results are printed. It
// knows no verb. Start at Usage.
package console

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/nearest"
)

// UsageError is a wrong command line or a wrong file: nothing was started.
type UsageError struct {
	error
	// remedy is what to do; it may be empty.
	remedy string
}

// Usage makes an error one of usage, with what to do, which may be empty.
func Usage(err error, remedy string) error { return UsageError{err, remedy} }

// Unwrap gives the error that it is of.
func (e UsageError) Unwrap() error { return e.error }

// Remedy says what to do; it may be empty.
func (e UsageError) Remedy() string { return e.remedy }

// Advised is an error with what to do about it.
func Advised(text, remedy string) error { return &advisedError{text, remedy} }

type advisedError struct{ text, remedy string }

func (e *advisedError) Error() string { return e.text }

// Hint says what to do.
func (e *advisedError) Hint() string { return e.remedy }

// StatusError passes the exit status of a program in a node on; the program has
// said what there is to say.
type StatusError struct{ Status int }

// Error tells the status.
func (e StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// KnownVerb refuses what is not a verb of the command.
func KnownVerb(cmd *cobra.Command, args []string) error {
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
	remedy := SeeHelp(cmd)
	if near, ok := nearest.Word(name, verbs); ok {
		remedy = "did you mean '" + cmd.CommandPath() + " " + near + "'?"
	}
	return Usage(fmt.Errorf("%s knows no command %q", cmd.CommandPath(), name), remedy)
}

// SeeHelp is the remedy of a wrong command line.
func SeeHelp(cmd *cobra.Command) string {
	return "'" + cmd.CommandPath() + " --help' shows what it takes"
}

// WantsArgs says that the arguments do not fit.
func WantsArgs(cmd *cobra.Command, got int) error {
	return Usage(fmt.Errorf("%s does not take %s", cmd.CommandPath(), Count(got, "argument")), "usage: "+cmd.UseLine())
}

// Require makes flags ones that cannot be left out.
func Require(cmd *cobra.Command, flags ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range flags {
			if !cmd.Flags().Changed(name) {
				return Usage(fmt.Errorf("%s needs --%s", cmd.CommandPath(), name), "usage: "+cmd.UseLine())
			}
		}
		return nil
	}
}

// Exactly is cobra.ExactArgs with an error that says what was meant.
func Exactly(n int) cobra.PositionalArgs { return Within(n, n) }

// Some takes one argument or more.
func Some() cobra.PositionalArgs { return Within(1, math.MaxInt) }

// Within takes so many arguments at least and at most.
func Within(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return WantsArgs(cmd, len(args))
		}
		return nil
	}
}
