package identity_test

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

const fabric = "edge.example.org"

// fixture is a fabric with authorities of clusters.
type fixture struct {
	t    *testing.T
	root identity.Authority
	// folder of authorities and gateways.
	folder string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	key := newKey(t)
	root, err := identity.NewFabric(fabric, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return fixture{t, root, t.TempDir()}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := identity.NewKey(identity.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// cluster makes the authority of a cluster, by way of its folder.
func (f fixture) cluster(name string, now time.Time) identity.Authority {
	f.t.Helper()
	key := newKey(f.t)
	chain, err := f.root.Cluster(name, key.Public(), now)
	if err != nil {
		f.t.Fatal(err)
	}
	folder := filepath.Join(f.folder, rand.Text())
	if err := identity.Write(folder, key, chain, f.root.Chain); err != nil {
		f.t.Fatal(err)
	}
	a, trusted, err := identity.LoadAuthority(folder)
	if err != nil || len(trusted) != len(f.root.Chain) {
		f.t.Fatal(trusted, err)
	}
	return a
}

// gateway makes the folder of a gateway.
func (f fixture) gateway(cluster, name string) string {
	f.t.Helper()
	key := newKey(f.t)
	chain, err := f.cluster(cluster, time.Now()).Gateway(name, key.Public(), time.Now(), time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	folder := filepath.Join(f.folder, cluster+"-"+name)
	if err := identity.Write(folder, key, chain, f.root.Chain); err != nil {
		f.t.Fatal(err)
	}
	return folder
}

func (f fixture) store(folder string) *identity.Store {
	f.t.Helper()
	s, err := identity.Open(folder)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// shake hands, and say what each side made of the other.
func shake(t *testing.T, server, client *tls.Config) (called, caller error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = tls.Client(conn, client).Handshake()
	if err != nil {
		conn.Close()
	}
	return <-done, err
}

func TestGatewaysKnowEachOther(t *testing.T) {
	f := newFixture(t)
	one, two := f.store(f.gateway("c1", "g1")), f.store(f.gateway("c2", "g1"))
	if called, caller := shake(t, one.Server("x"), two.Client("c1", "x")); called != nil || caller != nil {
		t.Errorf("called: %v, caller: %v", called, caller)
	}
	if _, caller := shake(t, one.Server("x"), two.Client("c3", "x")); !errors.Is(caller, identity.ErrUntrusted) {
		t.Errorf("c1 answers for c3: %v", caller)
	}
	if n := one.Current().Name; n != (identity.Name{Fabric: fabric, Cluster: "c1", Gateway: "g1"}) || n.String() != "c1/g1" {
		t.Errorf("got %+v", n)
	}
}

// Whoever is not of the fabric, or says to be another, is refused by who is called.
func TestStrangersAreRefused(t *testing.T) {
	f := newFixture(t)
	one := f.store(f.gateway("c1", "g1"))
	own := f.store(f.gateway("c2", "g1"))
	other := newFixture(t)
	stranger := other.store(other.gateway("c2", "g1"))
	for name, c := range map[string]*tls.Config{
		"another authority": trusting(stranger.Client("c1", "x")),
		"no certificate":    {MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"x"}},
		"TLS 1.2":           older(own.Client("c1", "x")),
		"another protocol":  own.Client("c1", "y"),
	} {
		if called, _ := shake(t, one.Server("x"), c); called == nil {
			t.Errorf("%s: it is let in", name)
		}
	}
}

// trusting takes whoever answers.
func trusting(c *tls.Config) *tls.Config {
	c.VerifyConnection = nil
	return c
}

func older(c *tls.Config) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	return c
}

// What a chain is refused for.
func TestVerify(t *testing.T) {
	f := newFixture(t)
	own := f.store(f.gateway("c1", "g1")).Current()
	c2 := f.cluster("c2", time.Now())
	key := newKey(t)
	good, err := c2.Gateway("g1", key.Public(), time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		chain []*x509.Certificate
		at    time.Time
		want  string
	}{
		{"as it should be", good, time.Now(), ""},
		{"nothing", nil, time.Now(), "a chain of 0 certificates"},
		{"without its cluster's", good[:1], time.Now(), "unknown authority"},
		{"expired", good, time.Now().Add(2 * time.Hour), "expired"},
		{"not valid yet", good, time.Now().Add(-time.Hour), "not yet valid"},
		{"a name of another cluster", forged(t, c2, good, "spiffe://"+fabric+"/cluster/c1/gateway/g1", "g1.c1."+fabric), time.Now(), "not permitted"},
		{"two names", forged(t, c2, good, "spiffe://"+fabric+"/cluster/c1/gateway/g1", "g1.c2."+fabric), time.Now(), "not a name"},
		{"a name of something else", forged(t, c2, good, "spiffe://"+fabric+"/ns/default/sa/x", "g1.c2."+fabric), time.Now(), "not a name"},
		{"another fabric", forged(t, c2, good, "spiffe://example.com/cluster/c2/gateway/g1", "g1.c2."+fabric), time.Now(), "not permitted"},
		{"a cluster's own", good[1:], time.Now(), "a certificate with 0 URIs"},
		{"too many", slicesRepeat(good[0], 9), time.Now(), "a chain of 9 certificates"},
	} {
		n, err := own.Verify(c.chain, x509.ExtKeyUsageClientAuth, c.at)
		if c.want == "" {
			if err != nil || n.String() != "c2/g1" {
				t.Errorf("%s: %v, %v", c.name, n, err)
			}
			continue
		}
		if !errors.Is(err, identity.ErrUntrusted) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func slicesRepeat(c *x509.Certificate, n int) (all []*x509.Certificate) {
	for range n {
		all = append(all, c)
	}
	return all
}

// forged has a cluster's authority sign names that it should not.
func forged(t *testing.T, a identity.Authority, like []*x509.Certificate, id, host string) []*x509.Certificate {
	t.Helper()
	uri, err := url.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	draft := *like[0]
	draft.URIs, draft.DNSNames, draft.SerialNumber = []*url.URL{uri}, []string{host}, big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, &draft, a.Chain[0], like[0].PublicKey, a.Key())
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return append([]*x509.Certificate{made}, like[1:]...)
}

// One authority follows another: who believes only the old one believes what the new
// one signs.
func TestFollow(t *testing.T) {
	f := newFixture(t)
	old := f.store(f.gateway("c1", "g1")).Current()
	next, err := identity.NewFabric(fabric, newKey(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cross, err := f.root.Follow(next, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next.Chain = []*x509.Certificate{cross, next.Chain[0]}
	renewed := fixture{t, next, t.TempDir()}
	chain, err := renewed.cluster("c2", time.Now()).Gateway("g1", newKey(t).Public(), time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := old.Verify(chain, x509.ExtKeyUsageClientAuth, time.Now()); err != nil || n.Cluster != "c2" {
		t.Errorf("%v, %v", n, err)
	}
}

// A certificate that its issuer has revoked is believed no longer, once the list is
// there; the list of somebody else revokes nothing.
func TestRevoked(t *testing.T) {
	f := newFixture(t)
	folder := f.gateway("c1", "g1")
	store := f.store(folder)
	c2 := f.cluster("c2", time.Now())
	chain, err := c2.Gateway("g1", newKey(t).Public(), time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		if err := store.Reload(); err != nil {
			t.Fatal(err)
		}
		_, err := store.Current().Verify(chain, x509.ExtKeyUsageClientAuth, time.Now())
		return err
	}
	other := newFixture(t)
	for _, by := range []struct {
		name    string
		issuer  identity.Authority
		serial  *big.Int
		revoked bool
	}{
		{"another fabric", other.root, chain[1].SerialNumber, false},
		{"another number", f.root, big.NewInt(7), false},
		{"its cluster", c2, chain[0].SerialNumber, true},
		{"the fabric", f.root, chain[1].SerialNumber, true},
	} {
		text := listOf(t, by.issuer.Root(), by.issuer.Key(), by.serial)
		if err := os.WriteFile(filepath.Join(folder, "ca.crl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := verify(); errors.Is(err, identity.ErrRevoked) != by.revoked {
			t.Errorf("revoked by %s: %v", by.name, err)
		}
	}
}

// A key that is root's may be read by its group, as that of a pod is; another's may not.
func TestKeyOfAGroup(t *testing.T) {
	folder := newFixture(t).gateway("c1", "g1")
	key := filepath.Join(folder, "tls.key")
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	for _, owner := range []int{0, nobody} {
		if err := os.Chown(key, owner, -1); err != nil {
			t.Skip("needs root: keys change hands")
		}
		if _, err := identity.Load(folder); errors.Is(err, identity.ErrExposed) != (owner != 0) {
			t.Errorf("of %d: %v", owner, err)
		}
	}
}

// Folders that are no identity, and what they are told by.
func TestFolders(t *testing.T) {
	f := newFixture(t)
	load := func(change func(folder string)) string {
		folder := f.gateway("c1", "g1")
		change(folder)
		_, err := identity.Load(folder)
		_ = os.RemoveAll(folder)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	write := func(name, text string) func(string) {
		return func(folder string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := f.gateway("c3", "g1")
	otherKey, err := os.ReadFile(filepath.Join(other, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(string){
		"":                         func(string) {},
		"others may read the key":  func(folder string) { _ = os.Chmod(filepath.Join(folder, "tls.key"), 0o644) },
		"no such file":             func(folder string) { _ = os.Remove(filepath.Join(folder, "ca.crt")) },
		"do not belong together":   write("tls.key", string(otherKey)),
		`no block "CERTIFICATE"`:   write("tls.crt", "hello"),
		"x509: malformed":          write("tls.crt", "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"),
		`has a block "X"`:          write("ca.crt", "-----BEGIN X-----\nMAo=\n-----END X-----\n"),
		`no block "X509 CRL"`:      write("ca.crl", ""),
		"has 1048577 bytes: not a": write("ca.crt", strings.Repeat("x", 1<<20+1)),
	} {
		if got := load(change); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := identity.Write(other, newKey(t), f.root.Chain, f.root.Chain); !errors.Is(err, identity.ErrTaken) {
		t.Errorf("an identity is written over: %v", err)
	}
	if _, _, err := identity.LoadAuthority(other); !errors.Is(err, identity.ErrFolder) {
		t.Errorf("a gateway is an authority: %v", err)
	}
	store := f.store(other)
	write("tls.crt", "gone")(other)
	if err := store.Reload(); err == nil || store.Current().Name.Cluster != "c3" {
		t.Errorf("after a reload of nothing: %v, %v", err, store.Current().Name)
	}
}

func TestNames(t *testing.T) {
	f := newFixture(t)
	c1 := f.cluster("c1", time.Now())
	public := newKey(t).Public()
	for _, name := range []string{"", "A", "-a", "a.b", strings.Repeat("a", 64)} {
		if _, err := f.root.Cluster(name, public, time.Now()); !errors.Is(err, identity.ErrName) {
			t.Errorf("cluster %q: %v", name, err)
		}
		if _, err := c1.Gateway(name, public, time.Now(), time.Hour); !errors.Is(err, identity.ErrName) {
			t.Errorf("gateway %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "Example.org", "a..b", "spiffe://a", strings.Repeat("a.", 70) + "b"} {
		if _, err := identity.NewFabric(name, newKey(t), time.Now()); !errors.Is(err, identity.ErrName) {
			t.Errorf("fabric %q: %v", name, err)
		}
	}
	if _, err := f.root.Gateway("g1", public, time.Now(), time.Hour); !errors.Is(err, identity.ErrIssue) {
		t.Errorf("a fabric's authority signs a gateway: %v", err)
	}
	if _, err := identity.NewKey("rsa"); err == nil {
		t.Error("a key of another kind")
	}
	if _, err := identity.NewKey(identity.Ed25519); err != nil {
		t.Error(err)
	}
}

// What is read as certificates is written as it was.
func FuzzParseCertificates(f *testing.F) {
	key, err := identity.NewKey(identity.Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	root, err := identity.NewFabric(fabric, key, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(identity.EncodeCertificates(root.Chain))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := identity.ParseCertificates(text)
		if err != nil {
			return
		}
		again, err := identity.ParseCertificates(identity.EncodeCertificates(all))
		if err != nil || len(again) != len(all) {
			t.Errorf("%d certificates are %d, %v", len(all), len(again), err)
		}
	})
}
