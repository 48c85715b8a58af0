package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/fabric/authority"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/loopback"
)

func serveCommand(now func() time.Time) *cobra.Command {
	var ca, listen, admin string
	c := &cobra.Command{
		Use:   "serve --ca DIR --listen HOST:PORT",
		Short: "Answer clusters that join, renew, or ask whom to believe",
		Long: `Serve answers until it is ended, over HTTPS with TLS 1.3. It is needed for clusters
that join by a token and for 'skerry fabric renew'; gateways run without it.`,
		Example: "  skerry fabric ca serve --ca ca --listen 0.0.0.0:4440",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := identity.LoadAuthority(ca); err != nil {
				return explained(err)
			}
			server := authority.NewServer(ca, now, slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil)))
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			running, ctx := errgroup.WithContext(cmd.Context())
			if admin != "" {
				answer, err := observe(ctx, admin, server)
				if err != nil {
					return errors.Join(err, l.Close())
				}
				running.Go(answer)
			}
			running.Go(func() error { return server.Serve(ctx, l) })
			if err := done(cmd, "answering at %s", l.Addr()); err != nil {
				return err
			}
			return running.Wait()
		},
	}
	caFlag(c, &ca)
	c.Flags().StringVar(&listen, "listen", "", "HOST:PORT to answer at")
	c.Flags().StringVar(&admin, "admin", "", "ADDRESS:PORT of the loopback that answers /metrics, /healthz and /debug/pprof/")
	console.Require(c, "ca", "listen")
	return c
}

// observe listens for operators of an authority, and gives what answers them until the
// context ends.
func observe(ctx context.Context, address string, server *authority.Server) (serve func() error, err error) {
	if err := loopback.CheckAddress(address); err != nil {
		return nil, console.Usage(err, "")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(server.Metrics(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h := loopback.Handler(loopback.Answers{Metrics: metrics, Phase: func() (string, bool, bool) { return "serving", true, true }})
	return func() error { return loopback.Serve(ctx, l, h) }, nil
}
