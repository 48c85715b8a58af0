package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/workload"
)

func serveCommand() *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "serve WORKLOAD",
		Short: "Serve a workload over HTTP/1.1 until SIGTERM",
		Long:  "Serve a workload over HTTP/1.1 until SIGTERM: " + strings.Join(workload.Names(), ", ") + ".",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("serve takes one workload: %s", strings.Join(workload.Names(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return serve(c, args[0], addr) },
	}
	c.Flags().StringVar(&addr, "listen", "", "address to listen on, as HOST:PORT")
	return c
}

func serve(c *cobra.Command, name, addr string) error {
	if addr == "" {
		return usage("serve needs --listen HOST:PORT")
	}
	h, err := workload.Handler(name)
	if err != nil {
		return usage("%w", err)
	}
	l, err := workload.Listen(c.Context(), addr)
	if err != nil {
		return err
	}
	ready(c, l.Addr())
	return workload.Serve(c.Context(), l, h)
}

// ready tells whoever waits on stderr that addr can be used.
func ready(c *cobra.Command, addr fmt.Stringer) { c.PrintErrln("ready", addr) }
