package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/authority"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/console"
)

// tokenLasts is how long a token is good unless told otherwise.
const tokenLasts = 15 * time.Minute

// caCommand is what the keeper of a fabric's key does.
func caCommand(now func() time.Time) *cobra.Command {
	c := &cobra.Command{
		Use:   "ca",
		Short: "Keep the fabric's authority: let clusters in, renew, rotate, revoke",
		Args:  console.KnownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(serveCommand(now), tokenCommand(now), rotateCommand(now), retireCommand(), revokeCommand(now))
	return c
}

func tokenCommand(now func() time.Time) *cobra.Command {
	var ca, at string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "token CLUSTER --ca DIR --at HOST:PORT",
		Short: "Make a token, by which a cluster joins once",
		Long: `Token prints a secret that lets the cluster of that name join, once, from where it can
call 'skerry fabric ca serve' at HOST:PORT.`,
		Example: "  skerry fabric ca token c2 --ca ca --at 203.0.113.7:4440 | ssh c2 skerry fabric join - --out c2",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := authority.NewToken(ca, at, args[0], now().Add(lasts))
			if err != nil {
				return wrongName(explained(err))
			}
			return done(cmd, "%s", t.Text())
		},
	}
	caFlag(c, &ca)
	c.Flags().StringVar(&at, "at", "", "HOST:PORT where the cluster calls the authority")
	c.Flags().DurationVar(&lasts, "lasts", tokenLasts, "how long the token is good")
	console.Require(c, "ca", "at")
	return c
}

func rotateCommand(now func() time.Time) *cobra.Command {
	var ca, kind string
	c := &cobra.Command{
		Use:   "rotate --ca DIR",
		Short: "Give the fabric a new key, which the old one vouches for",
		Long: `Rotate makes a new key for the fabric's authority. Certificates by the old one stay
good. When every cluster has renewed, 'skerry fabric ca retire' ends the trust in it.`,
		Example: "  skerry fabric ca rotate --ca ca",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := identity.NewKey(kind)
			if err != nil {
				return console.Usage(err, "")
			}
			a, err := identity.Rotate(ca, key, now())
			if err != nil {
				return explained(err)
			}
			return done(cmd, "fabric %s has a new key, until %s; when all clusters have renewed: skerry fabric ca retire --ca %s", a.Fabric(), a.Root().NotAfter.Format(day), ca)
		},
	}
	caFlag(c, &ca)
	keyFlag(c, &kind)
	console.Require(c, "ca")
	return c
}

func retireCommand() *cobra.Command {
	var ca string
	c := &cobra.Command{
		Use:     "retire --ca DIR",
		Short:   "End the trust in keys that the fabric had before",
		Example: "  skerry fabric ca retire --ca ca",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := identity.Retire(ca)
			if err != nil {
				return explained(err)
			}
			return done(cmd, "retired %s", console.Count(n, "key"))
		},
	}
	caFlag(c, &ca)
	console.Require(c, "ca")
	return c
}

func revokeCommand(now func() time.Time) *cobra.Command {
	var ca string
	c := &cobra.Command{
		Use:   "revoke NAME --ca DIR",
		Short: "Revoke the certificates of a cluster, or of a gateway",
		Long: `Revoke puts all certificates of a cluster on the fabric's list, or with the folder of a
cluster's authority those of one of its gateways on the cluster's. Gateways learn of it
by 'skerry fabric renew', and end what those certificates are used for.`,
		Example: "  skerry fabric ca revoke c2 --ca ca\n  skerry fabric ca revoke g1 --ca c1",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := identity.RevokeName(ca, args[0], now())
			if err != nil {
				return explained(err)
			}
			return done(cmd, "revoked %s of %s", console.Count(n, "certificate"), args[0])
		},
	}
	caFlag(c, &ca)
	console.Require(c, "ca")
	return c
}

func joinCommand() *cobra.Command {
	var out, kind string
	c := &cobra.Command{
		Use:   "join TOKEN --out DIR",
		Short: "Join a fabric by a token: the authority that signs this cluster's gateways",
		Long: `Join makes a key here and has the fabric's authority sign it. The token says where that
is and how to know it. As - the token is read from standard input, where no list of
processes shows it.`,
		Example: "  skerry fabric join - --out c2 <token",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := readToken(cmd.InOrStdin(), args[0])
			if err != nil {
				return console.Usage(err, "'skerry fabric ca token' makes one")
			}
			if _, err := os.Lstat(out); err == nil {
				return console.Advised(fmt.Sprintf("%s: %v", out, identity.ErrTaken), "name another folder: the token is good still")
			}
			key, err := identity.NewKey(kind)
			if err != nil {
				return console.Usage(err, "")
			}
			chain, err := authority.Join(cmd.Context(), t, out, key)
			if err != nil {
				return refused(err)
			}
			return done(cmd, "cluster %s is in %s, until %s", t.Cluster, out, chain[0].NotAfter.Format(day))
		},
	}
	outFlag(c, &out)
	keyFlag(c, &kind)
	console.Require(c, "out")
	return c
}

// readToken reads a token that is given, or with - from standard input.
func readToken(in io.Reader, given string) (authority.Token, error) {
	if given == "-" {
		const most = 8 << 10
		text, err := io.ReadAll(io.LimitReader(in, most))
		if err != nil {
			return authority.Token{}, err
		}
		given = string(text)
	}
	return authority.ParseToken(strings.TrimSpace(given))
}

func caFlag(c *cobra.Command, ca *string) {
	c.Flags().StringVar(ca, "ca", "", "folder of the authority")
}

// refused adds what to do about an authority that does not grant.
func refused(err error) error {
	if errors.Is(err, authority.ErrRefused) {
		return console.Advised(err.Error(), "ask for a new token: each is good once, and for minutes")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(net.Error)) {
		return console.Advised(err.Error(), "is 'skerry fabric ca serve' running there, and can it be called from here?")
	}
	return err
}
