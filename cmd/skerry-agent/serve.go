package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/workload"
)

func serveCommand() *cobra.Command {
	var addr, protocol, node string
	var broken []string
	c := &cobra.Command{
		Use:   "serve WORKLOAD",
		Short: "Serve a workload until SIGTERM",
		Long: "Serve a workload until SIGTERM: " + strings.Join(workload.Names(), ", ") +
			". " + workload.HTTP1 + " and " + workload.HTTP2 + " are served alike; " + workload.TCP + " and " + workload.UDP +
			" carry " + workload.PayloadEcho + " alone, as bytes.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("serve takes one workload: %s", strings.Join(workload.Names(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return serve(c, args[0], protocol, addr, slices.Contains(broken, node))
		},
	}
	c.Flags().StringVar(&addr, "listen", "", "address to listen on, as HOST:PORT")
	c.Flags().StringVar(&protocol, "protocol", workload.HTTP1, "one of "+strings.Join(workload.Protocols(), ", "))
	c.Flags().StringVar(&node, "node", "", "the node that it serves at")
	c.Flags().StringSliceVar(&broken, "broken", nil, "nodes at which each connection of TCP is reset at its first word")
	return c
}

func serve(c *cobra.Command, name, protocol, addr string, broken bool) error {
	if addr == "" {
		return usage("serve needs --listen HOST:PORT")
	}
	if !slices.Contains(workload.Protocols(), protocol) {
		return usage("protocol %q is none of %s", protocol, strings.Join(workload.Protocols(), ", "))
	}
	h, err := workload.Handler(name)
	if err != nil {
		return usage("%w", err)
	}
	if raw := protocol == workload.TCP || protocol == workload.UDP; raw && name != workload.PayloadEcho {
		return usage("%s is not served over %s: %s alone is", name, protocol, workload.PayloadEcho)
	}
	if protocol == workload.UDP {
		p, err := workload.ListenPacket(c.Context(), addr)
		if err != nil {
			return err
		}
		ready(c, p.LocalAddr())
		return workload.ServePackets(c.Context(), p)
	}
	l, err := workload.Listen(c.Context(), addr)
	if err != nil {
		return err
	}
	ready(c, l.Addr())
	switch {
	case broken:
		return workload.Break(c.Context(), l)
	case protocol == workload.TCP:
		runtime.GOMAXPROCS(1) // a second thread that is woken for so little costs more than it does
		return workload.ServeStream(c.Context(), l)
	}
	return workload.Serve(c.Context(), l, h)
}

// ready tells whoever waits on stderr that addr can be used.
func ready(c *cobra.Command, addr fmt.Stringer) { c.PrintErrln("ready", addr) }
