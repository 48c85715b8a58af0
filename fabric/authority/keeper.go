package authority

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// Keeper keeps a cluster's certificates fresh: its authority's, by asking the fabric's,
// and those of gateways in folders on this machine, by signing them. What is to be
// believed and what is revoked goes on to those gateways.
type Keeper struct {
	// Address of the fabric's authority, as HOST:PORT.
	Address string
	// Cluster is the folder of the cluster's authority.
	Cluster string
	// Gateways are folders of gateways.
	Gateways []string
	// GatewayLasts is how long their certificates are made for.
	GatewayLasts time.Duration
	// Key is the kind of new keys of gateways.
	Key string
	Now func() time.Time
	Log *slog.Logger
}

// retryAfter is how long a keeper waits that was refused or heard nothing.
const retryAfter = 5 * time.Second

// Run keeps them until the context ends.
func (k Keeper) Run(ctx context.Context) error {
	for {
		err := k.Once(ctx)
		if err == nil {
			err = Follow(ctx, k.Address, k.Cluster)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to end, which is what the error says
		case err == nil:
			continue
		}
		k.Log.Error("not kept", "cluster", k.Cluster, "why", err.Error(), "next", retryAfter.String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryAfter):
		}
	}
}

// Once renews what is due, and passes on what is to be believed: to gateways also where the
// fabric's authority is away, since the cluster's own signs theirs.
func (k Keeper) Once(ctx context.Context) error {
	failed := []error{k.follow(ctx)}
	own, _, err := identity.LoadAuthority(k.Cluster)
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, folder := range k.Gateways {
		if err := k.gateway(own, folder); err != nil {
			failed = append(failed, fmt.Errorf("gateway %s: %w", folder, err))
		}
	}
	return errors.Join(failed...)
}

// follow has the cluster's authority have what the fabric's tells, and a certificate.
func (k Keeper) follow(ctx context.Context) error {
	// First its own list: that of the answer has it then. One that is refused keeps nobody from
	// hearing what others have revoked.
	refused := Publish(ctx, k.Address, k.Cluster)
	if refused != nil && !errors.Is(refused, ErrRefused) {
		return refused
	}
	if err := Update(ctx, k.Address, k.Cluster); err != nil {
		return errors.Join(refused, err)
	}
	own, trusted, err := identity.LoadAuthority(k.Cluster)
	if err != nil {
		return errors.Join(refused, err)
	}
	// The first of those to believe is the newest.
	if due(own.Root().NotBefore, own.Root().NotAfter, k.Now()) || own.Root().CheckSignatureFrom(trusted[0]) != nil {
		err = k.renew(ctx)
	}
	return errors.Join(refused, err)
}

func (k Keeper) renew(ctx context.Context) error {
	chain, err := Renew(ctx, k.Address, k.Cluster)
	if err != nil {
		return err
	}
	k.Log.Info("renewed", "cluster", k.Cluster, "until", chain[0].NotAfter)
	return nil
}

// gateway renews one that is due, or whose cluster's authority was, and gives it the
// cluster's trust.
func (k Keeper) gateway(own identity.Authority, folder string) error {
	trusted, revoked, err := identity.ReadTrust(k.Cluster)
	if err != nil {
		return err
	}
	i, err := identity.Load(folder)
	if err != nil {
		return err
	}
	begin, end := i.Validity()
	longer := end.Before(own.Root().NotAfter) // another would last no longer than who signs it
	if i.Under(own.Root()) && !(due(begin, end, k.Now()) && longer) {
		return identity.UpdateTrust(folder, trusted, revoked)
	}
	key, err := identity.NewKey(k.Key)
	if err != nil {
		return err
	}
	chain, err := own.Gateway(i.Name.Gateway, key.Public(), k.Now(), k.GatewayLasts)
	if err != nil {
		return err
	}
	if err := identity.Record(k.Cluster, i.Name.Gateway, chain[0]); err != nil {
		return err
	}
	k.Log.Info("renewed", "gateway", i.Name.String(), "until", chain[0].NotAfter)
	return identity.Replace(folder, key, chain, trusted, revoked)
}

// due says whether two thirds of a certificate's life are over.
func due(begin, end, now time.Time) bool {
	const over, of = 2, 3
	return now.After(begin.Add(end.Sub(begin) * over / of))
}
