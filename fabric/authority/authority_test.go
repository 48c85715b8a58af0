package authority_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry.dev/skerry/fabric/authority"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/conntest"
)

// fixture is a fabric whose authority answers.
type fixture struct {
	folder, address string
	log             *buffer
	server          *authority.Server
}

// buffer is what was logged.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := identity.NewKey(identity.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serve(t *testing.T) fixture {
	t.Helper()
	f := fixture{folder: filepath.Join(t.TempDir(), "ca"), log: &buffer{}}
	key := newKey(t)
	root, err := identity.NewFabric("edge.example.org", key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.Write(f.folder, key, root.Chain, root.Chain); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	f.server = authority.NewServer(f.folder, time.Now, slog.New(slog.NewTextHandler(f.log, nil)))
	go func() { done <- f.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// counted waits until so many requests were answered so: an answer is counted when it has
// been given.
func (f fixture) counted(t *testing.T, what, code string, n int) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(f.server.Metrics())
	want := fmt.Sprintf(`answers_total{code=%q,what=%q} %d`, code, what, n)
	conntest.Await(t, want, func() bool {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		return strings.Contains(w.Body.String(), want)
	})
}

func (f fixture) token(t *testing.T, cluster string) authority.Token {
	t.Helper()
	token, err := authority.NewToken(f.folder, f.address, cluster, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Of many who use a token at once one joins.
func TestTokenOnce(t *testing.T) {
	f := serve(t)
	token := f.token(t, "c1")
	const n = 20
	var joined, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	dir := t.TempDir()
	for i := range n {
		key := newKey(t)
		all.Go(func() {
			_, err := authority.Join(t.Context(), token, filepath.Join(dir, string(rune('a'+i))), key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				joined++
			case errors.Is(err, authority.ErrRefused):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if joined != 1 || refused != n-1 {
		t.Errorf("%d joined, %d were refused, of %d", joined, refused, n)
	}
	if said := f.log.String(); strings.Contains(said, token.Secret) || strings.Count(said, "msg=refused") != n-1 {
		t.Errorf("the log has\n%s", said)
	}
	f.counted(t, "join", "200", 1)
	f.counted(t, "join", "403", n-1)
	if strings.Contains(token.String(), token.Secret) {
		t.Error("a token prints its secret")
	}
}

// A token is used with the authority that made it, and with no other.
func TestAnotherAuthority(t *testing.T) {
	f, other := serve(t), serve(t)
	token := f.token(t, "c1")
	token.Address = other.address
	dir := filepath.Join(t.TempDir(), "c1")
	if _, err := authority.Join(t.Context(), token, dir, newKey(t)); !errors.Is(err, identity.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
	token.Address = f.address
	if _, err := authority.Join(t.Context(), token, dir, newKey(t)); err != nil {
		t.Errorf("the token is spent: %v", err)
	}
}

// What a hostile caller says is refused, in a line, and a token is not spent by it.
func TestHostileCallers(t *testing.T) {
	f := serve(t)
	token := f.token(t, "c1")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/join", "", 400, "not a request"},
		{"POST", "/v1/join", `{"request": "x", "secret": "` + token.Secret + `"}`, 400, "no signing request"},
		{"POST", "/v1/join", `{"request": "x", "more": 1}`, 400, "not a request"},
		{"POST", "/v1/join", `{"request": "` + strings.Repeat("x", 100<<10) + `"}`, 400, "not a request"},
		{"POST", "/v1/renew", `{"request": "x"}`, 400, "no signing request"},
		{"POST", "/v1/revoked", `{"revoked": "x"}`, 403, "not to be trusted"},
		{"GET", "/v1/join", "", 405, ""},
		{"GET", "/", "", 404, ""},
	} {
		r, err := http.NewRequest(c.method, "https://"+f.address+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, answer.StatusCode, text, c.status, c.want)
		}
	}
	late, err := authority.NewToken(f.folder, f.address, "c1", time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Join(t.Context(), late, filepath.Join(t.TempDir(), "c1"), newKey(t)); err == nil {
		t.Error("a token that has expired lets in")
	}
	if said := f.log.String(); strings.Contains(said, token.Secret) || strings.Contains(said, late.Secret) || strings.Count(said, "msg=refused") != 7 {
		t.Errorf("the log has\n%s", said)
	}
	f.counted(t, "join", "403", 1)
	f.counted(t, "join", "400", 4)
	f.counted(t, "renew", "400", 1)
	f.counted(t, "revoked", "403", 1)
	if _, err := authority.Join(t.Context(), token, filepath.Join(t.TempDir(), "c1"), newKey(t)); err != nil {
		t.Errorf("the token is spent: %v", err)
	}
}

// A keeper learns of a revocation at once, passes it on to gateways, and renews what
// another key of the fabric makes due.
func TestKeeper(t *testing.T) {
	f := serve(t)
	dir := t.TempDir()
	c1, g1 := filepath.Join(dir, "c1"), filepath.Join(dir, "g1")
	if _, err := authority.Join(t.Context(), f.token(t, "c1"), c1, newKey(t)); err != nil {
		t.Fatal(err)
	}
	own, trusted, err := identity.LoadAuthority(c1)
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	chain, err := own.Gateway("g1", key.Public(), time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.Write(g1, key, chain, trusted); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	k := authority.Keeper{
		Address: f.address, Cluster: c1, Gateways: []string{g1}, GatewayLasts: time.Hour, Key: identity.ECDSA,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	go func() { ended <- k.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if _, err := authority.Join(t.Context(), f.token(t, "c2"), filepath.Join(dir, "c2"), newKey(t)); err != nil {
		t.Fatal(err)
	}
	c2, _, err := identity.LoadAuthority(filepath.Join(dir, "c2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := identity.RevokeName(f.folder, "c2", time.Now()); err != nil {
		t.Fatal(err)
	}
	conntest.Await(t, "trust of the gateway that knows what is revoked", func() bool {
		trust, err := identity.LoadTrust(g1)
		if err != nil {
			return false
		}
		_, err = trust.Cluster(c2.Chain, time.Now())
		return errors.Is(err, identity.ErrRevoked)
	})
	if _, err := identity.Rotate(f.folder, newKey(t), time.Now()); err != nil {
		t.Fatal(err)
	}
	conntest.Await(t, "the gateway to be signed anew", func() bool {
		i, err := identity.Load(g1)
		if err != nil {
			return false
		}
		renewed, _, err := identity.LoadAuthority(c1)
		return err == nil && !renewed.Root().Equal(own.Root()) && i.Under(renewed.Root())
	})
}

// While the fabric's authority is away, gateways get what the cluster's can give them.
func TestKeeperAlone(t *testing.T) {
	f := serve(t)
	dir := t.TempDir()
	c1 := filepath.Join(dir, "c1")
	if _, err := authority.Join(t.Context(), f.token(t, "c1"), c1, newKey(t)); err != nil {
		t.Fatal(err)
	}
	own, trusted, err := identity.LoadAuthority(c1)
	if err != nil {
		t.Fatal(err)
	}
	var gateways []string
	for _, lasts := range []time.Duration{time.Hour, 400 * 24 * time.Hour} { // the second for as long as the cluster's
		name, key := fmt.Sprintf("g%d", len(gateways)), newKey(t)
		chain, err := own.Gateway(name, key.Public(), time.Now(), lasts)
		if err == nil {
			err = identity.Write(filepath.Join(dir, name), key, chain, trusted)
		}
		if err != nil {
			t.Fatal(err)
		}
		gateways = append(gateways, filepath.Join(dir, name))
	}
	ends := func(folder string) time.Time {
		i, err := identity.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		_, end := i.Validity()
		return end
	}
	before := ends(gateways[0])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody is there
	k := authority.Keeper{
		Address: l.Addr().String(), Cluster: c1, Gateways: append([]string{filepath.Join(dir, "none")}, gateways...), GatewayLasts: time.Hour,
		Key: identity.ECDSA, Now: func() time.Time { return time.Now().Add(300 * 24 * time.Hour) }, Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	err = k.Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v", err)
	}
	if after := ends(gateways[0]); !after.After(before) {
		t.Errorf("a gateway's certificate ends %s, and was to end %s", after, before)
	}
	if strings.Contains(f.log.String(), "gateway/g1") {
		t.Error("a certificate was renewed that cannot last longer")
	}
}

// Whoever asks is told whom to believe, but a cluster alone may wait for news.
func TestTrustWaits(t *testing.T) {
	f := serve(t)
	c1 := filepath.Join(t.TempDir(), "c1")
	if _, err := authority.Join(t.Context(), f.token(t, "c1"), c1, newKey(t)); err != nil {
		t.Fatal(err)
	}
	trusted, revoked, err := identity.ReadTrust(f.folder)
	if err != nil {
		t.Fatal(err)
	}
	version := authority.Trust{Trusted: string(trusted), Revoked: string(revoked)}.Version()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for known, status := range map[string]int{"": 200, "another": 200, version: 403} {
		r, err := http.NewRequest(http.MethodGet, "https://"+f.address+"/v1/trust?known="+known, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("who knows %q: status %d, want %d", known, answer.StatusCode, status)
		}
	}
	heard := make(chan error, 1)
	go func() { heard <- authority.Follow(t.Context(), f.address, c1) }()
	if _, err := identity.Rotate(f.folder, newKey(t), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-heard; err != nil {
		t.Error(err)
	}
	if now, _, err := identity.ReadTrust(c1); err != nil || bytes.Equal(now, trusted) {
		t.Errorf("no news: %v", err)
	}
}

// What a cluster revokes once its authority was renewed holds for gateways of before.
func TestRevokedAfterRenewal(t *testing.T) {
	f := serve(t)
	dir := t.TempDir()
	member := func(cluster string) (folder string, chain []*x509.Certificate) {
		folder = filepath.Join(dir, cluster)
		if _, err := authority.Join(t.Context(), f.token(t, cluster), folder, newKey(t)); err != nil {
			t.Fatal(err)
		}
		own, trusted, err := identity.LoadAuthority(folder)
		if err != nil {
			t.Fatal(err)
		}
		key := newKey(t)
		if chain, err = own.Gateway("g1", key.Public(), time.Now(), time.Hour); err == nil {
			err = errors.Join(identity.Record(folder, "g1", chain[0]), identity.Write(filepath.Join(dir, cluster+"-g1"), key, chain, trusted))
		}
		if err != nil {
			t.Fatal(err)
		}
		return folder, chain
	}
	c1, lost := member("c1")
	member("c2")
	if _, err := authority.Renew(t.Context(), f.address, c1); err != nil {
		t.Fatal(err)
	}
	if n, err := identity.RevokeName(c1, "g1", time.Now()); err != nil || n != 1 {
		t.Fatalf("%d certificates revoked: %v", n, err)
	}
	if err := authority.Publish(t.Context(), f.address, c1); err != nil {
		t.Fatal(err)
	}
	trusted, revoked, err := identity.ReadTrust(f.folder)
	if err == nil {
		err = identity.UpdateTrust(filepath.Join(dir, "c2-g1"), trusted, revoked)
	}
	if err != nil {
		t.Fatal(err)
	}
	peer, err := identity.Load(filepath.Join(dir, "c2-g1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Verify(lost, x509.ExtKeyUsageClientAuth, time.Now()); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("a gateway that was revoked: %v", err)
	}
}

// What is read as a token is written as it was.
func FuzzParseToken(f *testing.F) {
	f.Add(authority.Token{Address: "127.0.0.1:1", Cluster: "c1", Root: make([]byte, 32), Secret: "s"}.Text())
	f.Add("skerry-join-e30")
	f.Add("skerry-join-")
	// JSON reads a byte that is no UTF-8 as three others.
	f.Add("skerry-join-" + base64.RawURLEncoding.EncodeToString(
		[]byte(`{"a":"127.0.0.1:1","c":"c1","r":"`+strings.Repeat("A", 43)+"=\",\"s\":\"\xe3\"}")))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := authority.ParseToken(text)
		if err != nil {
			return
		}
		if token.Text() != strings.TrimSpace(text) {
			t.Errorf("%q is %q", text, token.Text())
		}
	})
}
