package httpconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/internal/conntest"
)

var web = transport.Target{Namespace: "default", Name: "web", Port: 80, Protocol: transport.TCP}

// backend dials an address for web, and knows nothing else.
type backend struct{ address string }

func (backend) Allow(peer identity.Name, r transport.Request) error {
	switch {
	case peer.String() != "c2/g1" || r.Source["label/app"] != "x":
		return &transport.Refusal{Code: transport.Denied}
	case r.Target != web:
		return &transport.Refusal{Code: transport.NoService}
	}
	return nil
}

func (b backend) Dial(ctx context.Context, _ identity.Name, _ transport.Request) (transport.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// fixture is a server, and who may call it.
type fixture struct {
	address        string
	config, server *tls.Config
	now            *clock
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func serve(t *testing.T, service func(*net.TCPConn)) fixture {
	t.Helper()
	stores := identitytest.Stores(t, "c1", "c2")
	at := &clock{at: time.Now()}
	server := httpconnect.NewServer(backend{conntest.Listen(t, service)}, at.now)
	config := stores["c1"].Server(httpconnect.Protocol)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go conntest.Accept(l, func(conn net.Conn) {
		defer conn.Close()
		c := conn.(*tls.Conn)
		if c.Handshake() != nil {
			return
		}
		if name, err := identity.Peer(c.ConnectionState()); err == nil {
			_ = server.Serve(c, name)
		}
	})
	return fixture{l.Addr().String(), stores["c2"].Client("c1", httpconnect.Protocol), config, at}
}

// dial connects to an application's side of streams to a target, whose ends come by the
// channel.
func (f fixture) dial(t *testing.T, to transport.Target) (*net.TCPConn, chan error) {
	t.Helper()
	d := httpconnect.NewDialer(f.address, f.config)
	ended, called := make(chan error, 1), make(chan struct{})
	address := conntest.Listen(t, func(app *net.TCPConn) {
		<-called // a dial that has not returned fails where its connection is reset
		err := d.Carry(context.Background(), transport.Request{Target: to, Source: map[string]string{"label/app": "x"}}, app)
		if errors.Is(err, transport.ErrNotOpened) {
			transport.Reset(app)
		}
		ended <- err
	})
	defer close(called)
	return conntest.Dial(t, address), ended
}

// All that is said comes back, and each direction ends by itself.
func TestStreams(t *testing.T) {
	f := serve(t, conntest.Echo)
	for _, size := range []int{0, 60, 3 << 20} {
		said := make([]byte, size)
		_, _ = rand.Read(said)
		app, ended := f.dial(t, web)
		go func() {
			_, _ = app.Write(said)
			_ = app.CloseWrite()
		}()
		heard, err := io.ReadAll(app)
		if err != nil || !bytes.Equal(heard, said) {
			t.Errorf("%d bytes: %d came back, %v", size, len(heard), err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A reset at one end is one at the other, and so is a refusal, which says why.
func TestResets(t *testing.T) {
	f := serve(t, func(conn *net.TCPConn) {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		transport.Reset(conn)
	})
	app, ended := f.dial(t, web)
	_, _ = app.Write([]byte("x"))
	if _, err := app.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the application hears %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	other := web
	other.Name = "other"
	app, ended = f.dial(t, other)
	if _, err := app.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the application hears %v of a refusal", err)
	}
	if refusal, ok := errors.AsType[*transport.Refusal](<-ended); !ok || refusal.Code != transport.NoService {
		t.Errorf("got %v", refusal)
	}
}

// A token is good for its peer, once, and for seconds.
func TestTokens(t *testing.T) {
	f := serve(t, func(conn *net.TCPConn) { conn.Close() })
	leave := func() string {
		_, body := f.say(t, `POST /v1/leave HTTP/1.1`, `{"target": {"namespace": "default", "name": "web", "port": 80, "protocol": "tcp"}, "source": {"label/app": "x"}}`)
		_, text, _ := strings.Cut(body, `"token":"`)
		token, _, _ := strings.Cut(text, `"`)
		if token == "" {
			t.Fatalf("no token: %s", body)
		}
		return token
	}
	connect := func(token string) int {
		status, _ := f.say(t, "CONNECT web.default:80 HTTP/1.1\r\nProxy-Authorization: Bearer "+token, "")
		return status
	}
	token := leave()
	if status := connect(token); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status := connect(token); status != http.StatusProxyAuthRequired {
		t.Errorf("a token that was used: status %d", status)
	}
	token = leave()
	f.now.pass(6 * time.Second)
	if status := connect(token); status != http.StatusProxyAuthRequired {
		t.Errorf("an old token: status %d", status)
	}
	if status := connect("made up"); status != http.StatusProxyAuthRequired {
		t.Errorf("no token: status %d", status)
	}
	for _, wrong := range []string{"GET / HTTP/1.1", "POST /v1/leave HTTP/1.1", "POST /other HTTP/1.1"} {
		for _, body := range []string{"x", `{"client": "192.0.2.7"}`} {
			if status, _ := f.say(t, wrong, body); status != http.StatusBadRequest {
				t.Errorf("%s with %s: status %d", wrong, body, status)
			}
		}
	}
}

// A header without an end is cut short, at whichever side it comes.
func TestEndlessHeader(t *testing.T) {
	f := serve(t, conntest.Echo)
	conn, err := tls.Dial("tcp", f.address, f.config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := drone(conn, "POST /v1/leave HTTP/1.1\r\nX: "); err == nil {
		t.Error("the server takes all of a header")
	}
	said := make(chan error, 1)
	f.answering(t, func(c *tls.Conn) { said <- drone(c, "HTTP/1.1 200 OK\r\nX: ") })
	_, ended := f.dial(t, web)
	if err := <-ended; !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("who calls is told %v", err)
	}
	if <-said == nil {
		t.Error("who calls takes all of a header")
	}
}

// drone says more of a header than buffers on the way take.
func drone(conn net.Conn, head string) error {
	_, err := io.WriteString(conn, head)
	for range 1 << 10 {
		if err == nil {
			_, err = conn.Write(bytes.Repeat([]byte("x"), 32<<10))
		}
	}
	return err
}

// answering has a gateway give leave, and answer CONNECT so, in the place of the server.
func (f *fixture) answering(t *testing.T, connect func(*tls.Conn)) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", f.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go conntest.Accept(l, func(conn net.Conn) {
		defer conn.Close()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		switch {
		case err != nil:
		case r.Method == http.MethodConnect:
			connect(conn.(*tls.Conn))
		default:
			const granted = `{"token":"x"}`
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(granted), granted)
		}
	})
	f.address = l.Addr().String()
}

// A request is given up whose rest does not come; a connection on which none begins is kept.
func TestSlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := identitytest.Stores(t, "c1", "c2")
		near, far := net.Pipe()
		server := httpconnect.NewServer(backend{}, time.Now)
		ended := make(chan time.Time)
		go func() {
			conn := tls.Server(far, stores["c1"].Server(httpconnect.Protocol))
			_ = server.Serve(conn, identity.Name{})
			ended <- time.Now()
		}()
		conn := tls.Client(near, stores["c2"].Client("c1", httpconnect.Protocol))
		defer near.Close()
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begin := time.Now()
		_, _ = io.WriteString(conn, "POST /v1/leave HTTP/1.1\r\n")
		if took := (<-ended).Sub(begin); took != 10*time.Second {
			t.Errorf("given up after %s", took)
		}
	})
}

// say says something to the server on a connection of its own, and gives the answer.
func (f fixture) say(t *testing.T, head, body string) (status int, text string) {
	t.Helper()
	conn, err := tls.Dial("tcp", f.address, f.config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = fmt.Fprintf(conn, "%s\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if strings.HasPrefix(head, "CONNECT") {
		return answer.StatusCode, ""
	}
	all, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all)
}
