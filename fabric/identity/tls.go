package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"
)

// Store holds the identity of a gateway, which may change while it runs. It is safe for
// concurrent use.
type Store struct {
	folder  string
	current atomic.Pointer[Identity]
}

// Open loads the identity of a folder.
func Open(folder string) (*Store, error) {
	s := &Store{folder: folder}
	return s, s.Reload()
}

// Reload takes what the folder has now. If that is no identity, the one before stays.
func (s *Store) Reload() error {
	i, err := Load(s.folder)
	if err == nil {
		s.current.Store(i)
	}
	return err
}

// Current is the identity now.
func (s *Store) Current() *Identity { return s.current.Load() }

// Server configures TLS for one who is called by gateways of any cluster of the fabric,
// speaking one of these protocols (ALPN).
func (s *Store) Server(protocols ...string) *tls.Config {
	c := s.mutual(protocols)
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = s.CheckCaller
	return c
}

// CheckCaller says why who has called is not to be trusted, by what is known now.
func (s *Store) CheckCaller(state tls.ConnectionState) error {
	_, err := s.Current().Verify(state.PeerCertificates, x509.ExtKeyUsageClientAuth, time.Now())
	return err
}

// Client configures TLS for calling a gateway of that cluster.
func (s *Store) Client(cluster string, protocols ...string) *tls.Config {
	c := s.mutual(protocols)
	c.InsecureSkipVerify = true // VerifyConnection does it: peers are known by cluster, not by host
	c.VerifyConnection = func(state tls.ConnectionState) error {
		n, err := s.Current().Verify(state.PeerCertificates, x509.ExtKeyUsageServerAuth, time.Now())
		if err == nil && n.Cluster != cluster {
			return fmt.Errorf("%s answers for the cluster %s: %w", n, cluster, ErrUntrusted)
		}
		return err
	}
	return c
}

// mutual has each side show a certificate in full: a resumed session would be one by a
// certificate that may be revoked since.
func (s *Store) mutual(protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, SessionTicketsDisabled: true,
		// Small records are for browsers; here each costs a header, a tag and two calls.
		DynamicRecordSizingDisabled: true,
		GetCertificate:              func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.Current().certificate, nil },
		GetClientCertificate:        func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.Current().certificate, nil },
	}
}

// Peer is who a connection is to, after its handshake.
func Peer(state tls.ConnectionState) (Name, error) {
	if len(state.PeerCertificates) == 0 {
		return Name{}, fmt.Errorf("no certificate: %w", ErrUntrusted)
	}
	return NameOf(state.PeerCertificates[0])
}
