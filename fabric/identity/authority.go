package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

// How long certificates are valid.
const (
	authorityLasts = 10 * 365 * 24 * time.Hour
	clusterLasts   = 365 * 24 * time.Hour
	// GatewayLasts is short: gateways get a new one while they run.
	GatewayLasts = 30 * 24 * time.Hour
	// clockSlack is how far a certificate begins before it is made, for peers whose
	// clocks are behind.
	clockSlack = 5 * time.Minute
	// serialBits of a certificate's number, at random: RFC 5280 section 4.1.2.2.
	serialBits = 120
)

// Kinds of keys.
const (
	ECDSA   = "ecdsa" // P-256
	Ed25519 = "ed25519"
)

// ErrIssue says that an authority does not sign what it is asked to.
var ErrIssue = errors.New("not for this authority to sign")

// NewKey makes a private key.
func NewKey(kind string) (crypto.Signer, error) {
	switch kind {
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("no kind of key %q: write %s or %s", kind, ECDSA, Ed25519)
}

// Authority signs certificates: that of a fabric those of clusters, that of a cluster
// those of its gateways.
type Authority struct {
	key crypto.Signer
	// Chain is its own certificate, then those that lead on to the fabric's.
	Chain []*x509.Certificate
}

// NewFabric makes the authority of a fabric.
func NewFabric(fabric string, key crypto.Signer, now time.Time) (Authority, error) {
	if err := (Name{Fabric: fabric, Cluster: "any"}).Check(); err != nil {
		return Authority{}, err
	}
	draft := newDraft(fabric, now, authorityLasts)
	draft.URIs = []*url.URL{{Scheme: "spiffe", Host: fabric}}
	authorise(draft, fabric)
	draft.MaxPathLen = 2 // a cluster's, and once more where one fabric's CA follows another
	made, err := sign(draft, draft, key.Public(), key)
	return Authority{key, []*x509.Certificate{made}}, err
}

// Fabric is the trust domain of an authority.
func (a Authority) Fabric() string { return a.Chain[len(a.Chain)-1].Subject.CommonName }

// Key is what it signs by.
func (a Authority) Key() crypto.Signer { return a.key }

// Follow has an authority of a fabric sign that of the next one, so that who knows only
// this one trusts what that one signs, as long as this one is valid.
func (a Authority) Follow(next Authority, now time.Time) (*x509.Certificate, error) {
	draft := newDraft(next.Fabric(), now, authorityLasts)
	draft.NotAfter = earlier(a.Chain[0].NotAfter, next.Chain[0].NotAfter)
	draft.URIs = next.Chain[0].URIs
	draft.AuthorityKeyId = a.Chain[0].SubjectKeyId // both have one name: only the keys tell them apart
	authorise(draft, next.Fabric())
	draft.MaxPathLen = 1
	return sign(draft, a.Chain[0], next.key.Public(), a.key)
}

// Cluster signs the certificate of a cluster's authority. It is for names of gateways of
// that cluster alone, which whoever verifies a certificate holds it to.
func (a Authority) Cluster(cluster string, public crypto.PublicKey, now time.Time) ([]*x509.Certificate, error) {
	n := Name{Fabric: a.Fabric(), Cluster: cluster}
	if err := n.Check(); err != nil {
		return nil, err
	}
	draft := newDraft(n.DNS(), now, clusterLasts)
	authorise(draft, n.DNS())
	draft.PermittedURIDomains = []string{n.Fabric}
	draft.MaxPathLenZero = true
	return a.issue(draft, public)
}

// Gateway signs the certificate of a gateway of the authority's cluster.
func (a Authority) Gateway(gateway string, public crypto.PublicKey, now time.Time, lasts time.Duration) ([]*x509.Certificate, error) {
	n, err := a.Member(gateway)
	if err != nil {
		return nil, err
	}
	draft := newDraft(n.DNS(), now, lasts)
	draft.KeyUsage = x509.KeyUsageDigitalSignature
	draft.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	draft.BasicConstraintsValid = true
	draft.DNSNames = []string{n.DNS()}
	id, err := url.Parse(n.SPIFFE())
	if err != nil {
		return nil, err
	}
	draft.URIs = []*url.URL{id}
	return a.issue(draft, public)
}

// Member is the name of a gateway of a cluster's authority.
func (a Authority) Member(gateway string) (Name, error) {
	own := a.Chain[0]
	if len(own.PermittedDNSDomains) != 1 || len(own.PermittedURIDomains) != 1 {
		return Name{}, fmt.Errorf("gateway %s by the authority of %s: %w", gateway, own.Subject.CommonName, ErrIssue)
	}
	n := Name{Fabric: own.PermittedURIDomains[0], Gateway: gateway}
	n.Cluster = own.PermittedDNSDomains[0][:max(0, len(own.PermittedDNSDomains[0])-len(n.Fabric)-1)]
	if gateway == "" {
		return Name{}, fmt.Errorf("gateway %q: %w", gateway, ErrName)
	}
	return n, n.Check()
}

// issue signs a draft, for no longer than the authority lasts, and adds its chain.
func (a Authority) issue(draft *x509.Certificate, public crypto.PublicKey) ([]*x509.Certificate, error) {
	draft.NotAfter = earlier(draft.NotAfter, a.Chain[0].NotAfter)
	made, err := sign(draft, a.Chain[0], public, a.key)
	if err != nil {
		return nil, err
	}
	chain := []*x509.Certificate{made}
	for _, c := range a.Chain {
		if !selfSigned(c) { // that one is in everybody's ca.crt
			chain = append(chain, c)
		}
	}
	return chain, nil
}

// authorise makes a draft one of an authority for names below a domain.
func authorise(draft *x509.Certificate, domain string) {
	draft.IsCA, draft.BasicConstraintsValid = true, true
	draft.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	draft.PermittedDNSDomainsCritical = true
	draft.PermittedDNSDomains = []string{domain}
}

func newDraft(common string, now time.Time, lasts time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: common},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(lasts),
	}
}

func newSerial() *big.Int {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return serial
}

func sign(draft, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, draft, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", draft.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// selfSigned says whether a certificate is one to begin trust with.
func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(c) == nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
