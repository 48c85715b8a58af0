package identity_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// longList is a list that takes some 30 KiB.
func longList(t *testing.T, by *x509.Certificate, key crypto.Signer) []byte {
	t.Helper()
	draft := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
	for n := range int64(600) {
		serial := new(big.Int).Lsh(big.NewInt(n+1), 100)
		draft.RevokedCertificateEntries = append(draft.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now()})
	}
	list, err := x509.CreateRevocationList(rand.Reader, draft, by, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: list})
}

// However often a cluster takes another key and revokes by it, the fabric's authority goes on, and
// what others revoke is taken.
func TestRevokedByManyKeys(t *testing.T) {
	folder, root := newFolder(t)
	var refused int
	for range 50 {
		key := newKey(t)
		c1 := certified(t, folder, root, "c1", key)
		err := identity.AddRevoked(folder, c1, longList(t, c1[0], key), time.Now())
		switch {
		case errors.Is(err, identity.ErrRevokedMost):
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}
	if refused < 45 {
		t.Errorf("%d of 50 long lists were refused", refused)
	}
	key := newKey(t)
	c2 := certified(t, folder, root, "c2", key)
	list := listOf(t, c2[0], key, big.NewInt(7))
	if err := identity.AddRevoked(folder, c2, list, time.Now()); err != nil {
		t.Error(err)
	}
	if _, revoked, err := identity.ReadTrust(folder); err != nil || !bytes.Contains(revoked, list) {
		t.Errorf("what another revokes is not there: %v", err)
	}
}

// Clusters together leave room for what the fabric's authority revokes, and one that sends a
// shorter list is heard.
func TestRevokedByManyClusters(t *testing.T) {
	folder, root := newFolder(t)
	key := newKey(t)
	for n := range 26 {
		c := certified(t, folder, root, "c"+string(rune('a'+n)), key)
		err := identity.AddRevoked(folder, c, longList(t, c[0], key), time.Now())
		if err != nil && !errors.Is(err, identity.ErrRevokedMost) {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "ca.crl")); err != nil || info.Size() > 512<<10 {
		t.Errorf("%v, %v", info, err)
	}
	first := certified(t, folder, root, "ca", key)
	if err := identity.AddRevoked(folder, first, listOf(t, first[0], key, big.NewInt(7)), time.Now()); err != nil {
		t.Errorf("a shorter list: %v", err)
	}
	if _, err := identity.RevokeName(folder, "ca", time.Now()); err != nil {
		t.Errorf("the fabric's own: %v", err)
	}
}

// What a cluster has revoked by the key that it had before it joined anew stays revoked, for as long
// as what that key has signed can be good; and no cluster speaks by another's name.
func TestRevokedByKeyOfBefore(t *testing.T) {
	folder, root := newFolder(t)
	add := func(cluster string, by []*x509.Certificate, key crypto.Signer, now time.Time) []byte {
		list := listOf(t, by[0], key, big.NewInt(7))
		if err := identity.AddRevoked(folder, certified(t, folder, root, cluster, key), list, now); err != nil {
			t.Fatal(err)
		}
		return list
	}
	count := func(list []byte) int {
		_, revoked, err := identity.ReadTrust(folder)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(revoked, list)
	}
	now, key, other := time.Now(), newKey(t), newKey(t)
	before := add("c1", certified(t, folder, root, "c1", key), key, now)
	anew := certified(t, folder, root, "c1", newKey(t))
	add("c1", certified(t, folder, root, "c1", other), other, now)
	if n := count(before); n != 1 {
		t.Errorf("the list by the key of before is there %d times", n)
	}
	if _, err := identity.Rotate(folder, newKey(t), now); err != nil {
		t.Fatal(err)
	}
	if n, err := identity.RevokeName(folder, "c1", now); err != nil || n == 0 {
		t.Fatal(err)
	}
	trust := func() *identity.Trust {
		trust, err := identity.LoadTrust(folder)
		if err != nil {
			t.Fatal(err)
		}
		return trust
	}
	foreign := add("c2", anew, newKey(t), now)
	if n := count(foreign); n != 0 {
		t.Error("a list by another's name is taken")
	}
	late := now.Add(2 * 365 * 24 * time.Hour)
	add("c3", certified(t, folder, root, "c3", key), key, late)
	if n := count(before); n != 0 {
		t.Error("a list outlives what it speaks of")
	}
	if _, err := trust().Cluster(anew, now); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("what the fabric has revoked: %v", err)
	}
}
