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
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/source/file"
	"skerry.dev/skerry/internal/changes"
	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/loopback"
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
			if config.Admin != "" {
				if err := loopback.CheckAddress(config.Admin); err != nil {
					return console.Usage(err, "give one such as 127.0.0.1:4480, and let what collects from elsewhere run beside the gateway")
				}
			}
			return serve(c.Context(), config, resources)
		},
	}
	f := c.Flags()
	f.StringVar(&config.Identity, "identity", "", "folder with tls.crt, tls.key and ca.crt")
	f.StringVar(&resources, "resources", "", "folder with the files of Peers, ServiceExports, ServiceImports, AccessPolicies and Workloads")
	f.StringVar(&config.Listen, "listen", "", "HOST:PORT where peers call; none can without")
	f.StringVar(&config.DNS, "dns", "", "HOST:PORT where names of imports are asked for, by UDP and TCP; nowhere without")
	f.DurationVar(&config.Drain, "drain", 30*time.Second, "how long open connections may go on when it is asked to end")
	f.StringVar(&config.Admin, "admin", "", "ADDRESS:PORT of the loopback that answers /metrics, /healthz, /readyz, /v1/status and /debug/pprof/")
	f.StringVar(&config.Flows, "flows", "", "file to write a record of each flow to, as lines of JSON; FILE.1 has those before")
	n := &config.Connections
	f.IntVar(&n.Ahead, "connections", 4, "connections that are kept open to each gateway of a peer ahead of need, at least")
	f.IntVar(&n.Most, "connections-most", 256, "the most that are open; streams beyond it share one")
	f.StringVar(&n.Congestion, "congestion", "", "TCP's congestion control between gateways (default bbr where the kernel has it)")
	f.Int64Var(&n.Training, "training-bytes", 16<<20, "bytes that teach TCP the path of a connection; 0 for none")
	f.Int64Var(&n.TrainingPerHour, "training-bytes-per-hour", 256<<20, "bytes that do so for all connections to a peer in an hour")
	console.Require(c, "identity", "resources")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return console.Usage(err, console.SeeHelp(c)) })
	return c
}

// resourcesEvery is how often it looks whether the files have changed.
const resourcesEvery = time.Second

// serve runs the gateway by the files of a folder, as they are and as they change. What
// cannot be read is told, and things stay as they were.
func serve(ctx context.Context, config gateway.Config, resources string) error {
	since := changes.Now(resources)
	first, err := file.Read(resources)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	g, err := gateway.New(config, log)
	if err != nil {
		return err
	}
	next := make(chan *snapshot.Snapshot)
	go file.Watch(ctx, resources, since, resourcesEvery, func(s *snapshot.Snapshot, err error) {
		if err != nil {
			g.ResourcesFailed(err)
			return
		}
		select {
		case next <- s:
		case <-ctx.Done():
		}
	})
	return g.Run(ctx, first, next)
}

// report is of a wrong file as of a wrong command line.
func report(err error) int {
	if errors.As(err, new(*strict.Errors)) {
		err = console.Usage(err, "")
	}
	return console.Report("skerry-gateway", err)
}
