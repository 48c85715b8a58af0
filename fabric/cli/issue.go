package cli

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/console"
)

// day is how certificates' lives are told.
const day = "2006-01-02"

func initCommand(now func() time.Time) *cobra.Command {
	var name, kind string
	c := &cobra.Command{
		Use:   "init DIR --name FABRIC",
		Short: "Make a fabric: the authority that signs its clusters",
		Long: `Init makes the authority of a new fabric in a folder, which must not have one.
Whoever has the folder can let clusters into the fabric: keep it where no gateway runs.`,
		Example: "  skerry fabric init ca --name edge.example.org",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := identity.NewKey(kind)
			if err != nil {
				return console.Usage(err, "")
			}
			a, err := identity.NewFabric(name, key, now())
			if err != nil {
				return wrongName(err)
			}
			if err := identity.Write(args[0], key, a.Chain, a.Chain); err != nil {
				return explained(err)
			}
			return done(cmd, "fabric %s is in %s, until %s", name, args[0], a.Chain[0].NotAfter.Format(day))
		},
	}
	c.Flags().StringVar(&name, "name", "", "domain of the fabric, for example edge.example.org")
	keyFlag(c, &kind)
	console.Require(c, "name")
	return c
}

func peerCommand(now func() time.Time) *cobra.Command {
	var ca, out, kind string
	c := &cobra.Command{
		Use:   "peer CLUSTER --ca DIR --out DIR",
		Short: "Let a cluster into the fabric: the authority that signs its gateways",
		Long: `Peer makes the authority of a cluster in a folder of its own. It signs gateways of
that cluster and of no other: others would not be believed.`,
		Example: "  skerry fabric peer c1 --ca ca --out c1",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, trusted, err := identity.LoadAuthority(ca)
			if err != nil {
				return explained(err)
			}
			chain, err := issue(kind, out, trusted, func(public any) ([]*x509.Certificate, error) {
				chain, err := a.Cluster(args[0], public, now())
				if err != nil {
					return nil, err
				}
				return chain, identity.Record(ca, args[0], chain[0])
			})
			if err != nil {
				return err
			}
			return done(cmd, "cluster %s is in %s, until %s", args[0], out, chain[0].NotAfter.Format(day))
		},
	}
	c.Flags().StringVar(&ca, "ca", "", "folder of the fabric's authority")
	outFlag(c, &out)
	keyFlag(c, &kind)
	console.Require(c, "ca", "out")
	return c
}

func gatewayCommand(now func() time.Time) *cobra.Command {
	var peer, out, kind string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "gateway NAME --peer DIR --out DIR",
		Short: "Make a gateway's certificate",
		Long: `Gateway makes the folder that 'skerry-gateway --identity' takes: a key, a certificate
and the authorities to believe, as cert-manager lays out its secrets.`,
		Example: "  skerry fabric gateway g1 --peer c1 --out c1-g1",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, trusted, err := identity.LoadAuthority(peer)
			if err != nil {
				return explained(err)
			}
			chain, err := issue(kind, out, trusted, func(public any) ([]*x509.Certificate, error) {
				chain, err := a.Gateway(args[0], public, now(), lasts)
				if err != nil {
					return nil, err
				}
				return chain, identity.Record(peer, args[0], chain[0])
			})
			if err != nil {
				return err
			}
			return done(cmd, "gateway %s is in %s, until %s", args[0], out, chain[0].NotAfter.Format(day))
		},
	}
	c.Flags().StringVar(&peer, "peer", "", "folder of the cluster's authority")
	c.Flags().DurationVar(&lasts, "lasts", identity.GatewayLasts, "how long the certificate is valid")
	outFlag(c, &out)
	keyFlag(c, &kind)
	console.Require(c, "peer", "out")
	return c
}

// issue makes a key and has it certified, in a folder.
func issue(kind, out string, trusted []*x509.Certificate, sign func(public any) ([]*x509.Certificate, error)) ([]*x509.Certificate, error) {
	key, err := identity.NewKey(kind)
	if err != nil {
		return nil, console.Usage(err, "")
	}
	chain, err := sign(key.Public())
	if err != nil {
		return nil, wrongName(err)
	}
	return chain, explained(identity.Write(out, key, chain, trusted))
}

func outFlag(c *cobra.Command, out *string) {
	c.Flags().StringVar(out, "out", "", "folder to make")
}

func keyFlag(c *cobra.Command, kind *string) {
	c.Flags().StringVar(kind, "key", identity.ECDSA, "kind of the key: "+identity.ECDSA+" (P-256) or "+identity.Ed25519)
}

// wrongName makes an error of a name one of usage.
func wrongName(err error) error {
	if errors.Is(err, identity.ErrName) {
		return console.Usage(err, "")
	}
	return err
}

// explained adds what to do.
func explained(err error) error {
	switch {
	case errors.Is(err, identity.ErrTaken):
		return console.Advised(err.Error(), "name another folder, or remove that one")
	case errors.Is(err, fs.ErrNotExist):
		return console.Advised(err.Error(), "'skerry fabric init' makes a fabric, 'skerry fabric peer' a cluster of it")
	}
	return err
}
