// Package cli is the fabric's command line: it parses, asks the fabric's packages and
// prints. It decides nothing about trust or policies. Start at Command.
package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
)

// Command is `skerry fabric`; now is the clock that certificates begin by.
func Command(now func() time.Time) *cobra.Command {
	c := &cobra.Command{
		Use:   "fabric",
		Short: "Join clusters, so that services of one can be called in another",
		Long: `A fabric joins clusters: what one exports, clients in another call, between
gateways that know each other by certificates, where policies at both ends allow it.

On one machine:
  skerry fabric init ca --name edge.example.org
  skerry fabric peer c1 --ca ca --out c1
  skerry fabric gateway g1 --peer c1 --out c1-g1
  skerry-gateway --identity c1-g1 --resources c1-resources --listen 0.0.0.0:4443`,
		Args: console.KnownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(initCommand(now), caCommand(now), peerCommand(now), joinCommand(), gatewayCommand(now), renewCommand(now), explainCommand(), dryRunCommand(now), statusCommand(now))
	return c
}

// done says what was made, and what comes next.
func done(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}
