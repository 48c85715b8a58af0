package cluster

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
	"time"
)

const (
	// certificatesLast is how long those of a cluster are valid: longer than labs.
	certificatesLast = 365 * 24 * time.Hour
	// clockSlack is how far a certificate begins before it is made, for clocks that
	// are set back.
	clockSlack = time.Hour
	// serialBits of a certificate's number, at random: RFC 5280, section 4.1.2.2.
	serialBits = 120
)

// authority signs the certificates of one cluster: of its API server, of all that
// call it, and of service accounts. It is made with the cluster and known to no
// other.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// pem is the certificate.
	pem []byte
	now time.Time
}

// identity is a certificate with its key, both in PEM.
type identity struct{ certificate, key []byte }

// newAuthority makes the authority of a cluster.
func newAuthority(cluster string, now time.Time) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("make a key: %w", err)
	}
	draft := newDraft(pkix.Name{CommonName: "skerry-" + cluster}, now)
	draft.IsCA, draft.BasicConstraintsValid = true, true
	draft.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("sign the authority of %s: %w", cluster, err)
	}
	certificate, err := x509.ParseCertificate(der)
	return authority{certificate, key, block("CERTIFICATE", der), now}, err
}

// issue signs an identity for a client, and for a server at hosts, which are names
// or addresses.
func (a authority) issue(subject pkix.Name, hosts ...string) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make a key: %w", err)
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
		return identity{}, fmt.Errorf("sign a certificate for %s: %w", subject.CommonName, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return identity{block("CERTIFICATE", der), block("PRIVATE KEY", private)}, err
}

func newDraft(subject pkix.Name, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(certificatesLast),
	}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
