package cli

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/authority"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/console"
)

func renewCommand(now func() time.Time) *cobra.Command {
	k := authority.Keeper{Now: now}
	var watch bool
	c := &cobra.Command{
		Use:   "renew DIR --at HOST:PORT",
		Short: "Keep a cluster's certificates, and those of its gateways, fresh",
		Long: `Renew asks the fabric's authority at HOST:PORT for a new certificate of the cluster's
authority in DIR when two thirds of its life are over, or when the fabric has a new key,
and signs those of gateways in folders here when they are due. What the fabric believes
and has revoked goes on to those gateways, which take it while they run.

With --watch it goes on, and learns of what is revoked within a second.`,
		Example: "  skerry fabric renew c2 --at 203.0.113.7:4440 --gateway g1 --watch",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Cluster = args[0]
			k.Log = slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
			if watch {
				return k.Run(cmd.Context())
			}
			if err := k.Once(cmd.Context()); err != nil {
				return refused(explained(err))
			}
			return done(cmd, "%s and %s are fresh", args[0], console.Count(len(k.Gateways), "gateway"))
		},
	}
	c.Flags().StringVar(&k.Address, "at", "", "HOST:PORT of the fabric's authority")
	c.Flags().StringSliceVar(&k.Gateways, "gateway", nil, "folder of a gateway; may be given more than once")
	c.Flags().DurationVar(&k.GatewayLasts, "lasts", identity.GatewayLasts, "how long certificates of gateways are made for")
	c.Flags().BoolVar(&watch, "watch", false, "go on until ended")
	keyFlag(c, &k.Key)
	console.Require(c, "at")
	return c
}
