package identity_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// newFolder makes a fabric in a folder of its authority.
func newFolder(t *testing.T) (string, identity.Authority) {
	t.Helper()
	folder, key := filepath.Join(t.TempDir(), "ca"), newKey(t)
	root, err := identity.NewFabric(fabric, key, time.Now())
	if err == nil {
		err = identity.Write(folder, key, root.Chain, root.Chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder, root
}

// certified has an authority sign a cluster, as its folder notes.
func certified(t *testing.T, folder string, root identity.Authority, cluster string, key crypto.Signer) []*x509.Certificate {
	t.Helper()
	chain, err := root.Cluster(cluster, key.Public(), time.Now())
	if err == nil {
		err = identity.Record(folder, cluster, chain[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// listOf is a list by which an authority revokes a certificate of that number.
func listOf(t *testing.T, by *x509.Certificate, key crypto.Signer, serial *big.Int) []byte {
	t.Helper()
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: serial, RevocationTime: time.Now()}},
	}, by, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: list})
}

// What a fabric revokes once its key was rotated holds for what the old key has signed.
func TestRevokedAfterRotation(t *testing.T) {
	folder, root := newFolder(t)
	c2, c3 := certified(t, folder, root, "c2", newKey(t)), certified(t, folder, root, "c3", newKey(t))
	if _, err := identity.Rotate(folder, newKey(t), time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := identity.RevokeName(folder, "c2", time.Now()); err != nil || n != 1 {
		t.Fatalf("%d certificates revoked: %v", n, err)
	}
	trust, err := identity.LoadTrust(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Cluster(c2, time.Now()); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("of the cluster that was revoked: %v", err)
	}
	if name, err := trust.Cluster(c3, time.Now()); err != nil || name != "c3" {
		t.Errorf("of the other: %q, %v", name, err)
	}
}

// Whoever changes a folder at the same time, nothing that one of them has written is lost.
func TestFolderOfMany(t *testing.T) {
	const each, rotations = 20, 5
	folder, root := newFolder(t)
	other := filepath.Join(folder, "tokens", "one.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(other), 0o700), os.WriteFile(other, []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	do := func(n int, what func(i int) error) {
		all.Go(func() {
			for i := range n {
				if err := what(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	key := newKey(t)
	c1 := certified(t, folder, root, "c1", key)
	list := listOf(t, c1[0], key, big.NewInt(7))
	do(each, func(i int) error { return identity.Record(folder, fmt.Sprintf("a%d", i), c1[0]) })
	do(each, func(i int) error { return identity.Record(folder, fmt.Sprintf("b%d", i), c1[0]) })
	do(rotations, func(int) error { _, err := identity.Rotate(folder, newKey(t), time.Now()); return err })
	do(rotations, func(int) error { _, err := identity.RevokeName(folder, "c1", time.Now()); return err })
	do(rotations, func(int) error { return identity.AddRevoked(folder, c1, list, time.Now()) })
	all.Wait()
	issued, err := identity.ListIssued(folder, time.Now())
	if err != nil || len(issued) != 2*each+1 {
		t.Errorf("%d certificates are noted, of %d: %v", len(issued), 2*each+1, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	trust, err := identity.LoadTrust(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Cluster(c1, time.Now()); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("what was revoked is not: %v", err)
	}
	if _, revoked, err := identity.ReadTrust(folder); err != nil || bytes.Count(revoked, list) != 1 {
		t.Errorf("the cluster's own list is there %d times: %v", bytes.Count(revoked, list), err)
	}
	if left, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(left) != 1 {
		t.Errorf("beside the folder there are %v, %v", left, err)
	}
}

// A certificate that a full disk does not let be noted is refused, and what was noted before
// can be read.
func TestRecordOnFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	folder, root := newFolder(t)
	c1 := certified(t, t.TempDir(), root, "c1", newKey(t))[0]
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("needs a small file system: mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	noted, err := 0, error(nil)
	for ; err == nil && noted < 1000; noted++ {
		err = identity.Record(folder, strings.Repeat("x", 60), c1)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d: %v", noted, err)
	}
	if all, err := identity.ListIssued(folder, time.Now()); err != nil || len(all) != noted-1 {
		t.Errorf("%d can be read, of %d: %v", len(all), noted-1, err)
	}
}
