package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Bounds of what clusters have revoked, in PEM. Beyond what a file may have nobody could read
// the folder of a fabric's authority; the rest of it is for what that revokes itself.
const (
	clusterRevokedMost = 64 << 10
	revokedMost        = fileBytesMax / 2
)

// ErrRevokedMost says that what is revoked takes more than it may.
var ErrRevokedMost = errors.New("too long lists of what is revoked")

// AddRevoked takes a cluster's lists over into the folder of a fabric's authority: those
// that its authority, which shows a chain, has signed, in the place of the one before. What a
// cluster has signed by a key that it had before stays, until that key's certificates have
// expired: those of its gateways are good for as long.
func AddRevoked(folder string, chain []*x509.Certificate, text []byte, now time.Time) error {
	return Locked(folder, func() error { return addRevoked(folder, chain[0], text, now) })
}

func addRevoked(folder string, issuer *x509.Certificate, text []byte, now time.Time) error {
	trusted, before, err := ReadTrust(folder)
	if err != nil {
		return err
	}
	kept, err := readRevoked(filepath.Join(folder, revokedFile))
	if err != nil {
		return err
	}
	lists, err := parseBlocks("what is revoked", text, "X509 CRL", x509.ParseRevocationList)
	if err != nil {
		return err
	}
	a, _, err := LoadAuthority(folder)
	if err != nil {
		return err
	}
	issued, err := readIssued(filepath.Join(folder, issuedFile))
	if err != nil {
		return err
	}
	signed := func(list *x509.RevocationList) bool {
		return named(list, issuer) && list.CheckSignatureFrom(issuer) == nil
	}
	all := slices.DeleteFunc(kept, func(list *x509.RevocationList) bool {
		return signed(list) || outlived(list, a.Fabric(), issued, now)
	})
	for _, list := range lists {
		if signed(list) {
			all = append(all, list)
		}
	}
	after := encodeLists(all)
	if err := boundRevoked(all, issuer, len(before), len(after)); err != nil {
		return err
	}
	return UpdateTrust(folder, trusted, after)
}

// boundRevoked says which bound lists would exceed of which a cluster has sent some. To send
// fewer is allowed whatever others have.
func boundRevoked(all []*x509.RevocationList, issuer *x509.Certificate, before, after int) error {
	own := slices.DeleteFunc(slices.Clone(all), func(list *x509.RevocationList) bool { return !named(list, issuer) })
	switch n := len(encodeLists(own)); {
	case n > clusterRevokedMost:
		return fmt.Errorf("%d bytes of %s, want %d at most: %w", n, issuer.Subject.CommonName, clusterRevokedMost, ErrRevokedMost)
	case after > revokedMost && after > before:
		return fmt.Errorf("%d bytes of all clusters, want %d at most: %w", after, revokedMost, ErrRevokedMost)
	}
	return nil
}

// named says whether a list has an issuer's name: a cluster speaks for no other.
func named(list *x509.RevocationList, issuer *x509.Certificate) bool {
	return bytes.Equal(list.RawIssuer, issuer.RawSubject)
}

// outlived says whether a list is by a key of a cluster of which certificates are noted, and all
// of them have expired.
func outlived(list *x509.RevocationList, fabric string, issued []Issued, now time.Time) bool {
	noted := false
	for _, one := range issued {
		host, key := Name{Fabric: fabric, Cluster: one.Name}.DNS(), hex.EncodeToString(list.AuthorityKeyId)
		if host != list.Issuer.CommonName || one.Key != "" && one.Key != key {
			continue
		}
		if noted = true; now.Before(one.Until) {
			return false
		}
	}
	return noted
}

func encodeLists(lists []*x509.RevocationList) []byte {
	var out bytes.Buffer
	for _, list := range lists {
		_ = pem.Encode(&out, &pem.Block{Type: "X509 CRL", Bytes: list.Raw}) // a buffer does not fail
	}
	return out.Bytes()
}

// OwnRevoked gives the lists of a folder that its own authority has signed.
func OwnRevoked(folder string) ([]byte, error) {
	a, _, err := LoadAuthority(folder)
	if err != nil {
		return nil, err
	}
	lists, err := readRevoked(filepath.Join(folder, revokedFile))
	if err != nil {
		return nil, err
	}
	return encodeLists(slices.DeleteFunc(lists, func(list *x509.RevocationList) bool {
		return list.CheckSignatureFrom(a.Root()) != nil
	})), nil
}
