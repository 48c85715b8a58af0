package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// holdCommand keeps a node's namespaces alive: it does nothing until it is
// ended. It ignores SIGHUP and SIGINT, which are meant for the lab's terminal.
func holdCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hold",
		Short:  "Keep the namespaces of a node alive",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
			<-cmd.Context().Done()
			return nil
		},
	}
}
