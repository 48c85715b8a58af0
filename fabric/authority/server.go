// Package authority lets clusters into a fabric and keeps them there, over HTTPS: who
// brings a token, once, gets a certificate; who has one gets the next; and all learn
// whom to believe and what is revoked. It runs where the fabric's key is, which is no
// gateway. Start at NewServer for that side, at Join for the clusters'.
package authority

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry.dev/skerry/fabric/identity"
)

// Bounds of what the server takes and of how long.
const (
	bodyMax       = 64 << 10
	requestTime   = 10 * time.Second
	serverLasts   = 24 * time.Hour
	trustWait     = 20 * time.Second
	trustPoll     = 500 * time.Millisecond
	waitersMax    = 1000
	shutdownAfter = 2 * time.Second
)

// Server answers for the authority of a fabric. It reads the folder anew for each
// request, so that what changes there holds at once.
type Server struct {
	folder  string
	now     func() time.Time
	log     *slog.Logger
	waiters chan struct{}
	// answers counts requests by what was asked for, and the status of the answer.
	answers *prometheus.CounterVec
}

// NewServer makes the server of a folder.
func NewServer(folder string, now func() time.Time, log *slog.Logger) *Server {
	return &Server{
		folder: folder, now: now, log: log, waiters: make(chan struct{}, waitersMax),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skerry_authority_answers_total", Help: "Answers of the authority, by what was asked for and the status of HTTP.",
		}, []string{"what", "code"}),
	}
}

// Metrics are those of the server.
func (s *Server) Metrics() prometheus.Collector { return s.answers }

// Grant is what a cluster gets, in PEM.
type Grant struct {
	Chain string `json:"chain,omitempty"`
	Trust
}

// Trust is whom to believe, in PEM.
type Trust struct {
	Trusted string `json:"trusted"`
	Revoked string `json:"revoked,omitempty"`
}

// Version tells one trust from another.
func (t Trust) Version() string {
	sum := sha256.Sum256([]byte(t.Trusted + "\x00" + t.Revoked))
	return hex.EncodeToString(sum[:])
}

// Lists are revocation lists that a cluster has signed, in PEM.
type Lists struct {
	Revoked string `json:"revoked"`
}

// Wish is what a cluster sends: a certificate signing request (PKCS #10) in PEM, and the
// secret of a token where it has no certificate yet.
type Wish struct {
	Request string `json:"request"`
	Secret  string `json:"secret,omitempty"`
}

// Serve answers at a listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadTimeout: requestTime, WriteTimeout: trustWait + requestTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: bodyMax, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		soon, cancel := context.WithTimeout(context.Background(), shutdownAfter)
		defer cancel()
		_ = server.Shutdown(soon) // what is not done then is cut
	})
	defer stop()
	err := server.Serve(tls.NewListener(l, s.config()))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler answers, and counts how.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	counted := func(pattern, what string, answer http.HandlerFunc) {
		mux.Handle(pattern, promhttp.InstrumentHandlerCounter(s.answers.MustCurryWith(prometheus.Labels{"what": what}), answer))
	}
	counted("POST /v1/join", "join", s.join)
	counted("POST /v1/renew", "renew", s.renew)
	counted("POST /v1/revoked", "revoked", s.revoked)
	counted("GET /v1/trust", "trust", s.trust)
	return mux
}

// config shows a certificate made for the day, with all that lead to the fabric's, and
// asks for a cluster's where there is one.
func (s *Server) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			a, _, err := identity.LoadAuthority(s.folder)
			if err != nil {
				return nil, err
			}
			return a.Server(s.now(), serverLasts)
		},
	}
}

// join grants a certificate to who brings a token.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	var wish Wish
	if !s.read(w, r, &wish) {
		return
	}
	request, err := parseRequest(wish.Request)
	if err != nil { // before the token is used
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	cluster, err := use(s.folder, wish.Secret, s.now())
	if err != nil {
		s.refuse(w, r, http.StatusForbidden, err)
		return
	}
	s.grant(w, r, cluster, request)
}

// renew grants a certificate to the cluster that shows its present one.
func (s *Server) renew(w http.ResponseWriter, r *http.Request) {
	var wish Wish
	if !s.read(w, r, &wish) {
		return
	}
	request, err := parseRequest(wish.Request)
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	if cluster, ok := s.caller(w, r); ok {
		s.grant(w, r, cluster, request)
	}
}

// revoked takes a cluster's list of its gateways over.
func (s *Server) revoked(w http.ResponseWriter, r *http.Request) {
	var list Lists
	if !s.read(w, r, &list) {
		return
	}
	cluster, ok := s.caller(w, r)
	if !ok {
		return
	}
	if err := identity.AddRevoked(s.folder, r.TLS.PeerCertificates, []byte(list.Revoked), s.now()); err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	s.log.Info("revoked", "cluster", cluster, "from", r.RemoteAddr)
	answer(w, struct{}{})
}

// caller is the cluster whose certificate was shown.
func (s *Server) caller(w http.ResponseWriter, r *http.Request) (cluster string, ok bool) {
	t, err := identity.LoadTrust(s.folder)
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return "", false
	}
	if cluster, err = t.Cluster(r.TLS.PeerCertificates, s.now()); err != nil {
		s.refuse(w, r, http.StatusForbidden, err)
		return "", false
	}
	return cluster, true
}

// trust tells whom to believe: to a cluster when that is something else than it knows. Others are
// told what there is now, but wait for nothing.
func (s *Server) trust(w http.ResponseWriter, r *http.Request) {
	known := r.URL.Query().Get("known")
	t, err := s.current()
	switch {
	case err != nil:
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	case t.Version() != known:
		answer(w, t)
		return
	}
	if _, ok := s.caller(w, r); !ok {
		return
	}
	select {
	case s.waiters <- struct{}{}:
		defer func() { <-s.waiters }()
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, fmt.Errorf("%d wait already", waitersMax))
		return
	}
	for end := s.now().Add(trustWait); t.Version() == known && !s.now().After(end); {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(trustPoll):
		}
		if t, err = s.current(); err != nil {
			s.refuse(w, r, http.StatusInternalServerError, err)
			return
		}
	}
	answer(w, t)
}

func (s *Server) current() (Trust, error) {
	trusted, revoked, err := identity.ReadTrust(s.folder)
	return Trust{string(trusted), string(revoked)}, err
}

// grant signs a cluster's certificate.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, cluster string, request *x509.CertificateRequest) {
	a, _, err := identity.LoadAuthority(s.folder)
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	chain, err := a.Cluster(cluster, request.PublicKey, s.now())
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	t, err := s.current()
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	if err := identity.Record(s.folder, cluster, chain[0]); err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	s.log.Info("granted", "cluster", cluster, "from", r.RemoteAddr, "serial", chain[0].SerialNumber.Text(16), "until", chain[0].NotAfter)
	answer(w, Grant{string(identity.EncodeCertificates(chain)), t})
}

// read takes a request's body.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		s.refuse(w, r, http.StatusBadRequest, errors.New("not a request"))
		return false
	}
	return true
}

// refuse tells the caller and the log why. No error has a secret.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.log.Warn("refused", "what", r.URL.Path, "from", r.RemoteAddr, "why", err.Error())
	http.Error(w, err.Error(), status)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the caller is gone
}

// parseRequest reads a signing request, and holds it to the key that it is of.
func parseRequest(text string) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no signing request in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}
