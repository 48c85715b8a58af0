package main

import (
	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/impair/emulator"
)

// linksCommand emulates the links of a lab in the WAN's namespace.
func linksCommand() *cobra.Command {
	var socket, backend string
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Emulate the links of a lab in this network namespace",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return emulator.Serve(cmd.Context(), socket, backend)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "unix socket to take orders on")
	cmd.Flags().StringVar(&backend, "backend", emulator.Auto, "link back end: auto, netem or userspace")
	_ = cmd.MarkFlagRequired("socket") // fails only for a flag that is not there
	return cmd
}
