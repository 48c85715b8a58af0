// Package pki makes the certificates of one cluster, by an authority that is made with
// it and known to no other. It keeps nothing and writes no file but where it is told to.
// Start at New.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const (
	// certificatesLast is how long those of a cluster are valid: longer than labs.
	certificatesLast = 365 * 24 * time.Hour
	// ClockSlack is how far a certificate begins before it is made, for clocks that
	// are set back.
	ClockSlack = time.Hour
	// serialBits of a certificate's number, at random: RFC 5280, section 4.1.2.2.
	serialBits = 120
)

// Authority signs the certificates of one cluster: of its API server, of all that
// call it, and of service accounts.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// PEM is the certificate.
	PEM []byte
	now time.Time
}

// Identity is a certificate with its key, both in PEM.
type Identity struct{ Certificate, Key []byte }

// New makes the authority of a cluster.
func New(cluster string, now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, fmt.Errorf("make a key: %w", err)
	}
	draft := newDraft(pkix.Name{CommonName: "skerry-" + cluster}, now)
	draft.IsCA, draft.BasicConstraintsValid = true, true
	draft.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	if err != nil {
		return Authority{}, fmt.Errorf("sign the authority of %s: %w", cluster, err)
	}
	certificate, err := x509.ParseCertificate(der)
	return Authority{certificate, key, block("CERTIFICATE", der), now}, err
}

// Issue signs an identity for a client, and for a server at hosts, which are names
// or addresses.
func (a Authority) Issue(subject pkix.Name, hosts ...string) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("make a key: %w", err)
	}
	draft := newDraft(subject, a.now)
	draft.KeyUsage = x509.KeyUsageDigitalSignature
	draft.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		draft.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			draft.IPAddresses = append(draft.IPAddresses, ip)
		} else {
			draft.DNSNames = append(draft.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, a.certificate, key.Public(), a.key)
	if err != nil {
		return Identity{}, fmt.Errorf("sign a certificate for %s: %w", subject.CommonName, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return Identity{block("CERTIFICATE", der), block("PRIVATE KEY", private)}, err
}

// Write writes FILE.crt and FILE.key.
func (i Identity) Write(file string) error {
	if err := os.WriteFile(file+".crt", i.Certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(file+".key", i.Key, 0o600)
}

func newDraft(subject pkix.Name, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-ClockSlack), NotAfter: now.Add(certificatesLast),
	}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
