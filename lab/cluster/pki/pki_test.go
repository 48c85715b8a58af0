package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	"skerry.dev/skerry/lab/cluster/pki"
)

// A server's identity holds for its names and addresses, a client's for calling;
// neither holds by another cluster's authority.
func TestIdentities(t *testing.T) {
	now := time.Now()
	a, err := pki.New("c1", now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.Issue(pkix.Name{CommonName: "system:node:c1-head", Organization: []string{"system:nodes"}}, "c1-head", "10.1.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(made.Certificate, made.Key); err != nil {
		t.Error(err)
	}
	block, _ := pem.Decode(made.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM)
	for _, name := range []string{"c1-head", "10.1.0.1"} {
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(client); err != nil {
		t.Error(err)
	}
	other, err := pki.New("c2", now)
	if err != nil {
		t.Fatal(err)
	}
	client.Roots = x509.NewCertPool()
	client.Roots.AppendCertsFromPEM(other.PEM)
	if _, err := certificate.Verify(client); err == nil {
		t.Error("another cluster's authority vouches for it")
	}
	if certificate.Subject.CommonName != "system:node:c1-head" || certificate.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject %s", certificate.Subject)
	}
}
