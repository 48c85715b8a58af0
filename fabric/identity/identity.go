// Package identity says who a gateway is and whom it believes. A fabric has an
// authority, each cluster one of its own that the fabric's has signed, and each gateway
// a certificate by that of its cluster: an X.509-SVID (SPIFFE) with the keys of TLS 1.3.
// A cluster's authority is bound to the names of its own gateways by a name constraint
// (RFC 5280 section 4.2.1.10), so that nobody need trust it further than that.
//
// The package reads and writes folders and makes configurations of TLS; it opens no
// connection, and no gateway has a key of an authority. Start at Load for what a gateway
// has, at NewFabric for how it comes to be.
package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Files of a folder, as cert-manager lays out its secrets.
const (
	certificateFile = "tls.crt" // its own, then those that lead on to one of caFile
	keyFile         = "tls.key"
	caFile          = "ca.crt"
	revokedFile     = "ca.crl" // ours: certificate revocation lists, none where it is missing
)

// Bounds of what is read and verified.
const (
	fileBytesMax = 1 << 20
	chainMax     = 8
)

// What is wrong with a folder or with a peer.
var (
	ErrFolder    = errors.New("not an identity")
	ErrExposed   = errors.New("others may read the key")
	ErrUntrusted = errors.New("not to be trusted")
	ErrRevoked   = errors.New("revoked")
)

// Identity is what a gateway shows to its peers, and whom it believes. It does not
// change.
type Identity struct {
	Name Name
	// NotAfter is when the first certificate of its chain expires.
	NotAfter    time.Time
	chain       []*x509.Certificate
	certificate tls.Certificate
	trust       *Trust
	lifetimes   []Lifetime
}

// Load reads an identity from its folder.
func Load(folder string) (*Identity, error) {
	chain, err := readCertificates(filepath.Join(folder, certificateFile))
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(folder, keyFile))
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(EncodeCertificates(chain), key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s in %s do not belong together: %w", certificateFile, keyFile, folder, ErrFolder)
	}
	i := &Identity{chain: chain, certificate: certificate, NotAfter: chain[0].NotAfter}
	for _, c := range chain {
		i.NotAfter = earlier(i.NotAfter, c.NotAfter)
	}
	if i.Name, err = NameOf(chain[0]); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", certificateFile, folder, err)
	}
	if i.trust, err = LoadTrust(folder); err != nil {
		return nil, err
	}
	i.lifetimes = lifetimesOf(chain, i.trust.known)
	return i, nil
}

// Validity is from when to when its own certificate is valid.
func (i *Identity) Validity() (begin, end time.Time) {
	return i.certificate.Leaf.NotBefore, i.certificate.Leaf.NotAfter
}

// Same says whether the other has the same certificate.
func (i *Identity) Same(other *Identity) bool { return i.chain[0].Equal(other.chain[0]) }

// Under says whether its chain leads by that certificate of an authority.
func (i *Identity) Under(authority *x509.Certificate) bool {
	return slices.ContainsFunc(i.chain[1:], authority.Equal)
}

// Verify says who shows a chain of certificates, its own first, for that use.
func (i *Identity) Verify(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) (Name, error) {
	if err := i.trust.verify(chain, use, now); err != nil {
		return Name{}, err
	}
	n, err := NameOf(chain[0])
	switch {
	case err != nil:
		return Name{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	case n.Fabric != i.Name.Fabric:
		return Name{}, fmt.Errorf("%s is of the fabric %s: %w", n, n.Fabric, ErrUntrusted)
	}
	return n, nil
}

func lists(list *x509.RevocationList, c *x509.Certificate) bool {
	if !bytes.Equal(list.RawIssuer, c.RawIssuer) {
		return false
	}
	for _, entry := range list.RevokedCertificateEntries {
		if entry.SerialNumber.Cmp(c.SerialNumber) == 0 {
			return true
		}
	}
	return false
}

// readKey reads a private key that nobody else may read; of one that is root's its group may,
// which is how Kubernetes hands a Secret to who is not root (fsGroup).
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	others := fs.FileMode(0o077)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
		others = 0o037
	}
	if info.Mode().Perm()&others != 0 {
		return nil, fmt.Errorf("%s has the rights %v: %w: chmod 600 it", path, info.Mode().Perm(), ErrExposed)
	}
	return read(path)
}

func readCertificates(path string) ([]*x509.Certificate, error) {
	return readBlocks(path, "CERTIFICATE", x509.ParseCertificate)
}

func readRevoked(path string) ([]*x509.RevocationList, error) {
	lists, err := readBlocks(path, "X509 CRL", x509.ParseRevocationList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lists, err
}

// readBlocks reads a PEM file of one kind of blocks.
func readBlocks[T any](path, kind string, parse func([]byte) (T, error)) ([]T, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	return parseBlocks(path, text, kind, parse)
}

func parseBlocks[T any](path string, text []byte, kind string, parse func([]byte) (T, error)) ([]T, error) {
	var all []T
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != kind {
			return nil, fmt.Errorf("%s has a block %q: %w, want %q", path, block.Type, ErrFolder, kind)
		}
		one, err := parse(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, ErrFolder, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no block %q: %w", path, kind, ErrFolder)
	}
	return all, nil
}

// read reads a file that is not too large to be what it should be.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s has %d bytes: %w", path, info.Size(), ErrFolder)
	}
	return os.ReadFile(path)
}

// EncodeCertificates writes certificates in PEM.
func EncodeCertificates(chain []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range chain {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer does not fail
	}
	return out.Bytes()
}
