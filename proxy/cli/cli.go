// Package cli is the proxy's command line: it parses, asks the proxy's packages and
// prints. It decides nothing about who gets a connection. Start at Command.
package cli

import (
	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
)

// Command is `skerry proxy`.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Balance Services inside a cluster whose nodes are far apart",
		Long: `The proxy stands in kube-proxy's place for the Services that opt in, and gives each
connection to the endpoint that its policy chooses: the Resource Adaptive Proxy of the
paper, or the least expected time.`,
		Args: console.KnownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(append(Operator(), simulateCommand())...)
	return c
}

// Operator are the commands that ask a proxy which runs. The proxy's own program has them
// as well, since it is all that there is in its pod.
func Operator() []*cobra.Command { return []*cobra.Command{explainCommand(), dumpCommand()} }
