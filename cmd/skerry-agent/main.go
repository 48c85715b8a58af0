// Command skerry-agent is the lab's program inside nodes: one static binary
// for every role there. `serve` is a workload, `load` drives one, `talker` and
// `listener` time single packets, `links` emulates the links of a lab. It knows nothing of topologies or links; the
// lab starts it with all it needs on the command line.
//
// stdout is the result as one line of JSON, stderr is talk. It exits 0 when it
// did what was asked, 1 when it could not, 2 when it was asked wrongly. Start
// at root, the table of roles.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/load/oneway"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := root()
	c.SetIn(os.Stdin)
	c.SetOut(os.Stdout)
	c.SetErr(os.Stderr)
	return report(os.Stderr, c.ExecuteContext(ctx))
}

// root is the table of roles.
func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "skerry-agent",
		Short:         "The lab's program inside nodes",
		Args:          none,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(*cobra.Command, []string) error { return usage("no role given") },
	}
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	c.AddCommand(
		serveCommand(),
		loadCommand(),
		talkerCommand(),
		listenerCommand(),
		linksCommand(),
		holdCommand(),
		awakeCommand(),
		forwardCommand(),
		registryCommand(),
	)
	return c
}

// none is cobra.NoArgs with a usage error.
func none(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s does not know %q", c.CommandPath(), args[0])
	}
	return nil
}

// usageError is a command line that cannot be carried out.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func (e usageError) Unwrap() error { return e.error }

// report tells what went wrong and what to do next, and gives the exit status.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "skerry-agent: error: %v\n", err)
	if text := hint(err); text != "" {
		fmt.Fprintf(stderr, "skerry-agent: hint: %s\n", text)
	}
	if askedWrongly(err) {
		return 2
	}
	return 1
}

// askedWrongly reports an error of the command line or of a spec, as against
// one of the machine or the network.
func askedWrongly(err error) bool {
	return errors.As(err, new(usageError)) || errors.Is(err, load.ErrSpec) || errors.Is(err, oneway.ErrSpec)
}
