package authority

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/fabric/identity"
)

// ErrRefused says that the authority does not grant what it is asked for.
var ErrRefused = errors.New("the fabric's authority refuses")

// NewToken makes a token for a cluster, which is good until then, and once.
func NewToken(folder, address, cluster string, until time.Time) (Token, error) {
	a, _, err := identity.LoadAuthority(folder)
	if err != nil {
		return Token{}, err
	}
	if err := (identity.Name{Fabric: a.Fabric(), Cluster: cluster}).Check(); err != nil {
		return Token{}, err
	}
	secret, err := newSecret(folder, waiting{cluster, until})
	root := sha256.Sum256(a.Root().Raw)
	return Token{address, cluster, root[:], secret}, err
}

// Join makes the authority of a cluster in a folder, by a token.
func Join(ctx context.Context, t Token, folder string, key crypto.Signer) ([]*x509.Certificate, error) {
	c := newCaller(t.Address, func(shown []*x509.Certificate) []*x509.Certificate {
		return slices.DeleteFunc(slices.Clone(shown), func(root *x509.Certificate) bool {
			sum := sha256.Sum256(root.Raw)
			return !bytes.Equal(sum[:], t.Root)
		})
	}, nil)
	request, err := newRequest(t.Cluster, key)
	if err != nil {
		return nil, err
	}
	var g Grant
	if err := c.ask(ctx, "/v1/join", Wish{request, t.Secret}, &g); err != nil {
		return nil, err
	}
	return g.keep(folder, key, identity.Replace)
}

// Renew has the fabric's authority at an address certify that of a cluster anew. Its key stays:
// what it has revoked is revoked by that.
func Renew(ctx context.Context, address, folder string) ([]*x509.Certificate, error) {
	a, trusted, err := identity.LoadAuthority(folder)
	if err != nil {
		return nil, err
	}
	request, err := newRequest("", a.Key())
	if err != nil {
		return nil, err
	}
	var g Grant
	if err := newCaller(address, known(trusted), a.Certificate()).ask(ctx, "/v1/renew", Wish{Request: request}, &g); err != nil {
		return nil, err
	}
	return g.keep(folder, a.Key(), identity.Renew)
}

// Publish sends a cluster's own list of what is revoked, if it has one that the fabric's
// authority does not know.
func Publish(ctx context.Context, address, folder string) error {
	a, trusted, err := identity.LoadAuthority(folder)
	if err != nil {
		return err
	}
	text, err := identity.OwnRevoked(folder)
	if err != nil || len(text) == 0 {
		return err
	}
	return newCaller(address, known(trusted), a.Certificate()).ask(ctx, "/v1/revoked", Lists{string(text)}, &struct{}{})
}

// Update has a folder have the trust that the fabric's authority tells.
func Update(ctx context.Context, address, folder string) error {
	return update(ctx, address, folder, false)
}

// Follow waits until the fabric's authority tells of another trust than a folder has,
// or for a while. The folder has it then.
func Follow(ctx context.Context, address, folder string) error {
	return update(ctx, address, folder, true)
}

func update(ctx context.Context, address, folder string, wait bool) error {
	certificates, revoked, err := identity.ReadTrust(folder)
	if err != nil {
		return err
	}
	a, trusted, err := identity.LoadAuthority(folder)
	if err != nil {
		return err
	}
	version := Trust{string(certificates), string(revoked)}.Version()
	path := "/v1/trust"
	if wait {
		path += "?known=" + version
	}
	var t Trust
	if err := newCaller(address, known(trusted), a.Certificate()).ask(ctx, path, nil, &t); err != nil || t.Version() == version {
		return err
	}
	return identity.MergeTrust(folder, []byte(t.Trusted), []byte(t.Revoked))
}

// put writes an identity into a folder.
type put func(folder string, key crypto.Signer, chain []*x509.Certificate, trusted, revoked []byte) error

// keep has what was granted written into a folder.
func (g Grant) keep(folder string, key crypto.Signer, write put) ([]*x509.Certificate, error) {
	chain, err := identity.ParseCertificates([]byte(g.Chain))
	if err != nil {
		return nil, err
	}
	return chain, write(folder, key, chain, []byte(g.Trusted), []byte(g.Revoked))
}

// known are those of a folder's trust, whatever is shown.
func known(trusted []*x509.Certificate) func([]*x509.Certificate) []*x509.Certificate {
	return func([]*x509.Certificate) []*x509.Certificate { return trusted }
}

// caller calls an authority at HOST:PORT.
type caller struct {
	address string
	client  *http.Client
}

// newCaller makes one that believes an authority whose chain leads to one of the roots
// that a function gives for what is shown.
func newCaller(address string, roots func(shown []*x509.Certificate) []*x509.Certificate, own *tls.Certificate) *caller {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The authority is known by its root, not by where it is called.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return identity.VerifyServer(state.PeerCertificates, roots(state.PeerCertificates), time.Now())
		},
	}
	if own != nil {
		config.Certificates = []tls.Certificate{*own}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: trustWait + requestTime}
	return &caller{address, client}
}

func newRequest(cluster string, key crypto.Signer) (string, error) {
	draft := &x509.CertificateRequest{}
	draft.Subject.CommonName = cluster
	der, err := x509.CreateCertificateRequest(rand.Reader, draft, key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), err
}

// ask calls the authority: by POST where there is a body.
func (c *caller) ask(ctx context.Context, path string, body, into any) error {
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		method = http.MethodPost
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+c.address+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the fabric's authority: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, tokenMax)) // what of it there is
		return fmt.Errorf("%w: %s", ErrRefused, strings.TrimSpace(string(why)))
	}
	return json.NewDecoder(io.LimitReader(answer.Body, answerMax)).Decode(into)
}

// answerMax bounds what an authority may answer: chains, and lists of what is revoked.
const answerMax = 4 << 20
