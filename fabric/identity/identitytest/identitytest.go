// Package identitytest makes identities for tests of what stands on them. Start at New.
package identitytest

import (
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// New makes a fabric and a gateway g1 of each cluster, and gives their folders.
func New(t testing.TB, clusters ...string) map[string]string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	now := time.Now()
	key, err := identity.NewKey(identity.ECDSA)
	must(err)
	root, err := identity.NewFabric("test.skerry.dev", key, now)
	must(err)
	folders := map[string]string{}
	for _, cluster := range clusters {
		authority := filepath.Join(t.TempDir(), "authority")
		chain, err := root.Cluster(cluster, key.Public(), now)
		must(err)
		must(identity.Write(authority, key, chain, root.Chain))
		a, trusted, err := identity.LoadAuthority(authority)
		must(err)
		chain, err = a.Gateway("g1", key.Public(), now, identity.GatewayLasts)
		must(err)
		folders[cluster] = filepath.Join(t.TempDir(), "g1")
		must(identity.Write(folders[cluster], key, chain, trusted))
	}
	return folders
}

// Stores opens what New makes.
func Stores(t testing.TB, clusters ...string) map[string]*identity.Store {
	t.Helper()
	all := map[string]*identity.Store{}
	for cluster, folder := range New(t, clusters...) {
		store, err := identity.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		all[cluster] = store
	}
	return all
}
