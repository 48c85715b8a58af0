package workload

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// client2 speaks HTTP/2 without TLS, as any program would.
func client2(t *testing.T) *http.Client {
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: only}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// counting counts the connections that it accepts.
type counting struct {
	net.Listener
	count atomic.Int32
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.count.Add(1)
	}
	return conn, err
}

// One listener answers both versions of HTTP; the second by many requests at
// once on one connection.
func TestServeBothVersions(t *testing.T) {
	h, err := Handler(PayloadEcho)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counting{Listener: listener}
	serving(t, func(ctx context.Context) error { return Serve(ctx, l, h) })
	url, second := "http://"+l.Addr().String()+"/", client2(t)
	ask := func(c *http.Client, body string, want int) {
		r, err := c.Post(url, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Body.Close()
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body || r.ProtoMajor != want || r.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d bytes of %d, status %d, %v", r.Proto, len(got), len(body), r.StatusCode, err)
		}
	}
	ask(second, "first", 2)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { ask(second, string(bytes.Repeat([]byte{byte('a' + i)}, 1<<(i))), 2) })
	}
	all.Wait()
	if got := l.count.Load(); got != 1 {
		t.Errorf("HTTP/2 took %d connections, want 1", got)
	}
	first := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	ask(first, "old", 1)
}

// A stop lets the request of HTTP/2 that is under way end, and then the server.
func TestStopLetsHTTP2Finish(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	stop := serving(t, func(ctx context.Context) error { return Serve(ctx, l, h) })
	answered := make(chan string, 1)
	go func() {
		r, err := client2(t).Get("http://" + l.Addr().String() + "/")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		answered <- string(text)
	}()
	<-begun
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	begin := time.Now()
	stop()
	if got := <-answered; got != "done" {
		t.Errorf("the request under way is answered %q", got)
	}
	if took := time.Since(begin); took > stopGrace-time.Second {
		t.Errorf("the stop took %s", took)
	}
}
