// Command skerry-proxy balances Services inside a cluster: it runs on every node and
// carries the connections of the Services that opted in. It exits 0 when it was asked to
// end, 1 when it could not serve, 2 when it was asked wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/loopback"
	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/proxy/agent"
	"skerry.dev/skerry/proxy/cli"
	"skerry.dev/skerry/proxy/source"
)

// version is set at link time.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(console.Report("skerry-proxy", command().ExecuteContext(ctx)))
}

func command() *cobra.Command {
	config := agent.Config{Version: version}
	var kubeconfig string
	var here []string
	c := &cobra.Command{
		Use:   "skerry-proxy --node NAME --address ADDRESS",
		Short: "The proxy of a node, for the Services that opted in", Version: version,
		Args: console.Exactly(0), SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if config.Here, err = addresses(here); err != nil {
				return console.Usage(err, "give this node's address, and of a dual one that of each family")
			}
			if err := check(config); err != nil {
				return console.Usage(err, console.SeeHelp(c))
			}
			if config.Admin != "" {
				if err := loopback.CheckAddress(config.Admin); err != nil {
					return console.Usage(err, "give one such as 127.0.0.1:4482, and let what collects from elsewhere run beside the proxy")
				}
			}
			cluster, err := source.Connect(kubeconfig, config.Node)
			if errors.Is(err, source.ErrNowhere) {
				return console.Usage(err, "give --kubeconfig FILE, or run it by deploy/proxy")
			}
			if err != nil {
				return err
			}
			log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
			if err := thread.Batch(); err != nil {
				log.Warn("connections take more CPU time: they interrupt who computes", "reason", err)
			}
			return agent.Run(c.Context(), config, cluster, log)
		},
	}
	f := c.Flags()
	f.StringVar(&config.Node, "node", "", "this node's name in Kubernetes")
	f.StringSliceVar(&here, "address", nil, "this node's addresses, one a family, to which connections are brought")
	f.Uint16Var(&config.Port, "port", 4480, "port where brought connections of TCP arrive")
	f.Uint16Var(&config.CopyPort, "copy-loop-port", 4483, "port where those of Services with the data plane copy-loop arrive")
	f.Uint16Var(&config.ReportPort, "report-port", 4481, "port of UDP where proxies report to each other")
	f.Uint16Var(&config.RefusePort, "refuse-port", 4484, "port where nobody listens, which refuses who calls a Service without endpoints")
	f.StringVar(&config.Keys, "keys", "", "folder of the keys that sign reports, each a file; without it none are sent")
	f.StringVar(&config.Groups, "cgroups", "/sys/fs/cgroup", "folder where the node's control groups are")
	f.StringVar(&config.Admin, "admin", "", "ADDRESS:PORT of the loopback that answers /metrics, /healthz, /readyz, /v1/explain and /debug/pprof/")
	f.DurationVar(&config.Drain, "drain", 30*time.Second, "how long what is open may go on when it is asked to end, and more is served")
	f.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server; by default as a pod does")
	console.Require(c, "node", "address")
	c.CompletionOptions.DisableDefaultCmd = true
	c.AddCommand(cli.Operator()...)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return console.Usage(err, console.SeeHelp(c)) })
	return c
}

// check holds what is said to what can be.
func check(c agent.Config) error {
	switch {
	case c.Node == "":
		return errors.New("--node names no node")
	case c.Port == 0 || c.CopyPort == 0 || c.ReportPort == 0 || c.RefusePort == 0:
		return errors.New("0 is no port that connections can be brought to")
	case c.Drain < 0:
		return fmt.Errorf("--drain %s is less than 0s", c.Drain)
	default:
		return nil
	}
}

// addresses are those of this node, one at least, at most one a family.
func addresses(texts []string) ([]netip.Addr, error) {
	if len(texts) == 0 {
		return nil, errors.New("--address names none")
	}
	var all []netip.Addr
	for _, t := range texts {
		a, err := netip.ParseAddr(t)
		if err != nil {
			return nil, fmt.Errorf("--address %q is no address", t)
		}
		if a = a.Unmap(); !a.IsGlobalUnicast() {
			return nil, fmt.Errorf("--address %s is none that others reach this node at", a)
		}
		for _, other := range all {
			if other.Is4() == a.Is4() {
				return nil, fmt.Errorf("--address %s and %s are of the same family", other, a)
			}
		}
		all = append(all, a)
	}
	return all, nil
}
