package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
)

// Who was trusted when he called, and is not when his handshake is over, is found out, too.
func TestTrustThatChangesDuringAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Identity: identitytest.New(t, "c1")["c1"]}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		g.reload()
		here, there := net.Pipe()
		g.mu.Lock()
		g.callers[&caller{conn: tls.Server(here, &tls.Config{}), verify: func(tls.ConnectionState) error { return identity.ErrRevoked }}] = true
		g.mu.Unlock()
		ended := make(chan time.Time)
		begin := time.Now()
		go func() {
			_, _ = there.Read(make([]byte, 1))
			ended <- time.Now()
		}()
		if took := (<-ended).Sub(begin); took != settledAfter {
			t.Errorf("after %s", took)
		}
	})
}
