// Package identitytest makes identities for tests of what stands on them. Start at New.
package identitytest

import (
	"crypto"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// Fabric is one that a test has made.
type Fabric struct {
	t testing.TB
	// Folder of its authority.
	Folder string
	key    crypto.Signer
}

// NewFabric makes one.
func NewFabric(t testing.TB) Fabric {
	t.Helper()
	f := Fabric{t: t, Folder: filepath.Join(t.TempDir(), "ca")}
	var err error
	f.key, err = identity.NewKey(identity.ECDSA)
	f.must(err)
	root, err := identity.NewFabric("test.skerry.dev", f.key, time.Now())
	f.must(err)
	f.must(identity.Write(f.Folder, f.key, root.Chain, root.Chain))
	return f
}

func (f Fabric) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// Gateway makes the gateway g1 of a cluster, and gives its folder.
func (f Fabric) Gateway(cluster string) string {
	f.t.Helper()
	folder := filepath.Join(f.t.TempDir(), "g1")
	f.Renew(cluster, folder)
	return folder
}

// Renew puts a new identity of the gateway g1 of a cluster in a folder.
func (f Fabric) Renew(cluster, folder string) {
	f.t.Helper()
	f.RenewAt(cluster, folder, time.Now())
}

// RenewAt does so as it was done at another time.
func (f Fabric) RenewAt(cluster, folder string, now time.Time) {
	f.t.Helper()
	root, _, err := identity.LoadAuthority(f.Folder)
	f.must(err)
	chain, err := root.Cluster(cluster, f.key.Public(), time.Now())
	f.must(err)
	f.must(identity.Record(f.Folder, cluster, chain[0]))
	authority := filepath.Join(f.t.TempDir(), "authority")
	f.must(identity.Write(authority, f.key, chain, root.Chain))
	a, _, err := identity.LoadAuthority(authority)
	f.must(err)
	chain, err = a.Gateway("g1", f.key.Public(), now, identity.GatewayLasts)
	f.must(err)
	trusted, revoked, err := identity.ReadTrust(f.Folder)
	f.must(err)
	f.must(identity.Replace(folder, f.key, chain, trusted, revoked))
}

// Revoke puts the certificates of a cluster on the fabric's list, and gives the list to
// gateways.
func (f Fabric) Revoke(cluster string, folders ...string) {
	f.t.Helper()
	_, err := identity.RevokeName(f.Folder, cluster, time.Now())
	f.must(err)
	list, err := os.ReadFile(filepath.Join(f.Folder, "ca.crl"))
	f.must(err)
	for _, folder := range folders {
		f.must(os.WriteFile(filepath.Join(folder, "ca.crl"), list, 0o600))
	}
}

// New makes a fabric and a gateway g1 of each cluster, and gives their folders.
func New(t testing.TB, clusters ...string) map[string]string {
	t.Helper()
	f := NewFabric(t)
	folders := map[string]string{}
	for _, cluster := range clusters {
		folders[cluster] = f.Gateway(cluster)
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
