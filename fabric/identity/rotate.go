package identity

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"time"
)

// revokedLasts is how long a list of what is revoked says that it is fresh. One that is
// older still counts: nothing is trusted again for want of news.
const revokedLasts = 7 * 24 * time.Hour

// Rotate puts a new authority of a fabric in the place of the one in a folder. The old
// one signs it, so that who knows only the old one believes what it signs; both are in
// the folder's trust, for gateways to learn, until Retire.
func Rotate(folder string, key crypto.Signer, now time.Time) (next Authority, err error) {
	err = Locked(folder, func() error {
		next, err = rotate(folder, key, now)
		return err
	})
	return next, err
}

func rotate(folder string, key crypto.Signer, now time.Time) (Authority, error) {
	old, trusted, err := LoadAuthority(folder)
	if err != nil {
		return Authority{}, err
	}
	next, err := NewFabric(old.Fabric(), key, now)
	if err != nil {
		return Authority{}, err
	}
	cross, err := old.Follow(next, now)
	if err != nil {
		return Authority{}, err
	}
	// Of a rotation before that was not retired, the links from the one to the other.
	next.Chain = append(next.Chain, cross)
	for _, c := range old.Chain {
		if !selfSigned(c) {
			next.Chain = append(next.Chain, c)
		}
	}
	return next, next.replace(folder, append([]*x509.Certificate{next.Root()}, trusted...))
}

// Retire ends the trust in authorities before the one in a folder.
func Retire(folder string) (retired int, err error) {
	err = Locked(folder, func() error {
		retired, err = retire(folder)
		return err
	})
	return retired, err
}

func retire(folder string) (retired int, err error) {
	a, trusted, err := LoadAuthority(folder)
	if err != nil {
		return 0, err
	}
	a.Chain = a.Chain[:1]
	return len(trusted) - 1, a.replace(folder, a.Chain)
}

// replace writes the authority in the place of the one in a folder.
func (a Authority) replace(folder string, trusted []*x509.Certificate) error {
	_, revoked, err := ReadTrust(folder)
	if err != nil {
		return err
	}
	return Replace(folder, a.key, a.Chain, EncodeCertificates(trusted), revoked)
}

// Revoke puts certificates, by their numbers, on the list of the authority that has
// signed them, in its folder. It says how many were not on it before.
func Revoke(folder string, serials []*big.Int, now time.Time) (added int, err error) {
	err = Locked(folder, func() error {
		added, err = revoke(folder, serials, now)
		return err
	})
	return added, err
}

func revoke(folder string, serials []*big.Int, now time.Time) (int, error) {
	a, _, err := LoadAuthority(folder)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(folder, revokedFile)
	before, err := readRevoked(path)
	if err != nil {
		return 0, err
	}
	draft := &x509.RevocationList{Number: big.NewInt(now.UnixNano()), ThisUpdate: now, NextUpdate: now.Add(revokedLasts)}
	var text bytes.Buffer
	for _, list := range before {
		if list.CheckSignatureFrom(a.Root()) == nil {
			draft.RevokedCertificateEntries = append(draft.RevokedCertificateEntries, list.RevokedCertificateEntries...)
			continue
		}
		_ = pem.Encode(&text, &pem.Block{Type: "X509 CRL", Bytes: list.Raw}) // a buffer does not fail
	}
	added := 0
	for _, serial := range serials {
		is := func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(serial) == 0 }
		if !slices.ContainsFunc(draft.RevokedCertificateEntries, is) {
			draft.RevokedCertificateEntries = append(draft.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: now})
			added++
		}
	}
	der, err := x509.CreateRevocationList(rand.Reader, draft, a.Root(), a.key)
	if err != nil {
		return 0, fmt.Errorf("sign what is revoked: %w", err)
	}
	_ = pem.Encode(&text, &pem.Block{Type: "X509 CRL", Bytes: der})
	return added, put(path, text.Bytes())
}

// serialBase is how numbers of certificates are written, as openssl does.
const serialBase = 16

// parseSerial reads a certificate's number.
func parseSerial(text string) (*big.Int, error) {
	n, ok := new(big.Int).SetString(text, serialBase)
	if !ok || n.Sign() <= 0 {
		return nil, fmt.Errorf("%q is no number of a certificate", text)
	}
	return n, nil
}
