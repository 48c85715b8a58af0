package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// authorityName is the label of the server that answers for a fabric's authority.
const authorityName = "authority"

// Root is the certificate that a fabric is known by.
func (a Authority) Root() *x509.Certificate { return a.Chain[0] }

// Server makes a certificate for answering calls for a fabric's authority. Its chain
// ends with the fabric's own, so that who knows that one's hash can believe it.
func (a Authority) Server(now time.Time, lasts time.Duration) (*tls.Certificate, error) {
	key, err := NewKey(ECDSA)
	if err != nil {
		return nil, err
	}
	host := authorityName + "." + a.Fabric()
	draft := newDraft(host, now, lasts)
	draft.KeyUsage = x509.KeyUsageDigitalSignature
	draft.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	draft.DNSNames = []string{host}
	chain, err := a.issue(draft, key.Public())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(chain, a.Root().Equal) {
		chain = append(chain, a.Root())
	}
	return withKey(chain, key), nil
}

// Certificate is the authority's own, for showing who asks.
func (a Authority) Certificate() *tls.Certificate { return withKey(a.Chain, a.key) }

func withKey(chain []*x509.Certificate, key any) *tls.Certificate {
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, one := range chain {
		c.Certificate = append(c.Certificate, one.Raw)
	}
	return c
}

// VerifyServer verifies the chain of an authority's server, up to a root that is known:
// all are of one fabric.
func VerifyServer(chain, known []*x509.Certificate, now time.Time) error {
	if len(chain) == 0 || len(chain) > chainMax {
		return fmt.Errorf("a chain of %d certificates: %w", len(chain), ErrUntrusted)
	}
	if len(known) == 0 {
		return fmt.Errorf("it is another fabric's authority: %w", ErrUntrusted)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range known {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, DNSName: authorityName + "." + known[0].Subject.CommonName,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return nil
}

// Trust is whom a folder believes.
type Trust struct {
	roots   *x509.CertPool
	known   []*x509.Certificate // those of roots
	revoked []*x509.RevocationList
}

// LoadTrust reads it.
func LoadTrust(folder string) (*Trust, error) {
	roots, err := readCertificates(filepath.Join(folder, caFile))
	if err != nil {
		return nil, err
	}
	t := &Trust{roots: x509.NewCertPool(), known: roots}
	for _, root := range roots {
		t.roots.AddCert(root)
	}
	t.revoked, err = readRevoked(filepath.Join(folder, revokedFile))
	return t, err
}

// Cluster says of which cluster an authority is that shows a chain.
func (t *Trust) Cluster(chain []*x509.Certificate, now time.Time) (string, error) {
	if err := t.verify(chain, x509.ExtKeyUsageAny, now); err != nil {
		return "", err
	}
	n, err := Authority{Chain: chain}.Member("any")
	if err != nil || !chain[0].IsCA {
		return "", fmt.Errorf("the certificate of %s is of no cluster: %w", chain[0].Subject.CommonName, ErrUntrusted)
	}
	return n.Cluster, nil
}

// verify finds a path from a chain of certificates to a root, none of it revoked.
func (t *Trust) verify(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) error {
	if len(chain) == 0 || len(chain) > chainMax {
		return fmt.Errorf("a chain of %d certificates: %w", len(chain), ErrUntrusted)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	paths, err := chain[0].Verify(x509.VerifyOptions{
		Roots: t.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if !slices.ContainsFunc(paths, func(path []*x509.Certificate) bool { return !t.revokes(path) }) {
		return fmt.Errorf("the certificate of %s: %w", chain[0].Subject.CommonName, ErrRevoked)
	}
	return nil
}

// revokes says whether one of a path's certificates is on its issuer's list.
func (t *Trust) revokes(path []*x509.Certificate) bool {
	for at, c := range path[:len(path)-1] {
		for _, list := range t.revoked {
			if lists(list, c) && t.signed(list, path[at+1]) {
				return true
			}
		}
	}
	return false
}

// signed says whether a list is an issuer's: signed by its key, or where that is the fabric's
// by another one that is believed. One that was rotated away signs nothing more, and what it
// has issued is good until it is retired.
func (t *Trust) signed(list *x509.RevocationList, issuer *x509.Certificate) bool {
	by := func(c *x509.Certificate) bool { return list.CheckSignatureFrom(c) == nil }
	return by(issuer) || slices.ContainsFunc(t.known, by)
}

// ReadTrust gives the files of a folder's trust as they are, once they have been read.
func ReadTrust(folder string) (trusted, revoked []byte, err error) {
	if _, err := LoadTrust(folder); err != nil {
		return nil, nil, err
	}
	if trusted, err = read(filepath.Join(folder, caFile)); err != nil {
		return nil, nil, err
	}
	revoked, err = read(filepath.Join(folder, revokedFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return trusted, revoked, err
}

// UpdateTrust replaces a folder's trust where it is another.
func UpdateTrust(folder string, trusted, revoked []byte) error {
	before, revokedBefore, err := ReadTrust(folder)
	if err == nil && bytes.Equal(before, trusted) && bytes.Equal(revokedBefore, revoked) {
		return nil
	}
	return WriteTrust(folder, trusted, revoked)
}

// MergeTrust replaces the trust of an authority's folder, but for the lists that it has
// signed itself: nobody else knows better what those have.
func MergeTrust(folder string, trusted, revoked []byte) error {
	return Locked(folder, func() error {
		all, err := withOwn(folder, revoked)
		if err != nil {
			return err
		}
		return WriteTrust(folder, trusted, all)
	})
}

// withOwn adds the lists that the authority of a folder has signed, where others lack them.
func withOwn(folder string, revoked []byte) ([]byte, error) {
	own, err := OwnRevoked(folder)
	if err != nil || bytes.Contains(revoked, own) {
		return revoked, err
	}
	return slices.Concat(revoked, own), nil
}

// WriteTrust replaces a folder's trust.
func WriteTrust(folder string, trusted, revoked []byte) error {
	if _, err := ParseCertificates(trusted); err != nil {
		return err
	}
	// What is revoked first: nothing is believed for a moment that was not before.
	if err := writeRevoked(folder, revoked); err != nil {
		return err
	}
	return put(filepath.Join(folder, caFile), trusted)
}

func writeRevoked(folder string, revoked []byte) error {
	path := filepath.Join(folder, revokedFile)
	if strings.TrimSpace(string(revoked)) == "" {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if _, err := parseBlocks(path, revoked, "X509 CRL", x509.ParseRevocationList); err != nil {
		return err
	}
	if len(revoked) > fileBytesMax { // who reads it would take nothing of the folder
		return fmt.Errorf("%s would have %d bytes: %w", path, len(revoked), ErrFolder)
	}
	return put(path, revoked)
}

// ParseCertificates reads certificates in PEM.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	return parseBlocks("certificates", text, "CERTIFICATE", x509.ParseCertificate)
}
