// Command skerry-gateway is the gateway of a cluster in a fabric: it carries connections
// of local clients to services of other clusters, and theirs to services here. It exits
// 0 when it was asked to end, 1 when it could not serve, 2 when it was asked wrongly.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/source/file"
	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/strict"
)

// version is set at link time.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(report(command().ExecuteContext(ctx)))
}

func command() *cobra.Command {
	var config gateway.Config
	var resources string
	c := &cobra.Command{
		Use:   "skerry-gateway --identity DIR --resources DIR",
		Short: "The gateway of a cluster in a fabric", Version: version,
		Args: console.Exactly(0), SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := file.Read(resources)
			if err != nil {
				return err
			}
			g, err := gateway.New(config, s, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
			if err != nil {
				return err
			}
			return g.Run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&config.Identity, "identity", "", "folder with tls.crt, tls.key and ca.crt")
	f.StringVar(&resources, "resources", "", "folder with the files of Peers, ServiceExports, ServiceImports and AccessPolicies")
	f.StringVar(&config.Listen, "listen", "", "HOST:PORT where peers call; none can without")
	f.IntVar(&config.Connections, "connections", 1, "connections that are kept open to each gateway of a peer ahead of need")
	console.Require(c, "identity", "resources")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return console.Usage(err, console.SeeHelp(c)) })
	return c
}

func report(err error) int {
	if err == nil {
		return 0
	}
	usage, wrong := errors.AsType[console.UsageError](err)
	console.Explain(os.Stderr, "skerry-gateway", err, usage.Remedy())
	if wrong || errors.As(err, new(*strict.Errors)) {
		return 2
	}
	return 1
}
