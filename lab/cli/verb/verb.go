// Package verb is what the verbs of skerry share: how arguments are counted, what a
// wrong command line or file is, which remedy an error has, and how results are
// printed. It has no verb of its own. Start at Usage.
package verb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/impair/emulator"
)

// Env is what the command line takes from its process.
type Env struct {
	Version               string
	Args                  []string
	Stdin, Stdout, Stderr *os.File
}

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

// Exactly is cobra.ExactArgs with an error that says what was meant.
func Exactly(n int) cobra.PositionalArgs { return Within(n, n) }

// Within takes so many arguments at least and at most.
func Within(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return WantsArgs(cmd, len(args))
		}
		return nil
	}
}

// Agent finds skerry-agent: beside this program, which is where make puts it.
func Agent() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find skerry-agent: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), "skerry-agent")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: there is no %s", ErrNoAgent, path)
	}
	return path, nil
}

// ErrNoAgent says that there is no skerry-agent to start.
var ErrNoAgent = errors.New("cannot find skerry-agent beside skerry")

// CheckBackend refuses a link back end that there is not.
func CheckBackend(name string) error {
	known := []string{emulator.Auto, emulator.Netem, emulator.Userspace}
	if !slices.Contains(known, name) {
		return Usage(fmt.Errorf("no link back end %q", name), nearest.Hint(name, known))
	}
	return nil
}
