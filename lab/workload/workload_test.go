package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/clock"
)

// site is a server under test.
type site struct{ addr, URL string }

func serve(t *testing.T, name string) site {
	t.Helper()
	h, err := Handler(name)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, newServer(h))
}

// start runs s until the test ends.
func start(t testing.TB, s *server) site {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, s, l)
}

func startOn(t testing.TB, s *server, l net.Listener) site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return site{l.Addr().String(), "http://" + l.Addr().String()}
}

// do sends one request and reads the whole answer.
func do(t *testing.T, method, url string, body io.Reader) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, b
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// unsized hides a reader's length, so that the client sends chunks.
type unsized struct{ io.Reader }

func TestEchoAnswersTheBody(t *testing.T) {
	s := serve(t, PayloadEcho)
	for _, n := range []int{0, 1, 60, 1000, 100_000, 1_000_000, 3 << 20} {
		body := random(n)
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			answer, got := do(t, method, s.URL, bytes.NewReader(body))
			if answer.StatusCode != http.StatusOK || !bytes.Equal(got, body) {
				t.Errorf("%s of %d bytes: status %d and %d bytes, not the body", method, n, answer.StatusCode, len(got))
			}
			if answer.ContentLength != int64(n) {
				t.Errorf("%s of %d bytes: Content-Length %d", method, n, answer.ContentLength)
			}
		}
		if _, got := do(t, http.MethodPost, s.URL, unsized{bytes.NewReader(body)}); !bytes.Equal(got, body) {
			t.Errorf("chunked body of %d bytes did not come back", n)
		}
	}
}

func TestRecvAnswersNoBody(t *testing.T) {
	s := serve(t, PayloadRecv)
	for _, n := range []int{0, 60, 1_000_000} {
		answer, got := do(t, http.MethodPost, s.URL, bytes.NewReader(random(n)))
		if answer.StatusCode != http.StatusOK || answer.ContentLength != 0 || len(got) != 0 {
			t.Errorf("%d bytes: status %d, %d bytes", n, answer.StatusCode, len(got))
		}
	}
}

func TestStaticAnswers(t *testing.T) {
	first, again := serve(t, StaticReply), serve(t, StaticReply)
	_, a := do(t, http.MethodGet, first.URL, nil)
	_, b := do(t, http.MethodGet, again.URL, nil)
	if len(a) != StaticReplyLen || !bytes.Equal(a, b) {
		t.Errorf("two servers answer %d and %d bytes, want the same %d", len(a), len(b), StaticReplyLen)
	}
	if _, got := do(t, http.MethodGet, serve(t, HelloWorld).URL, nil); string(got) != "hello, world\n" {
		t.Errorf("hello-world answers %q", got)
	}
}

func TestSleepTakesAtLeastTheTimeAsked(t *testing.T) {
	s := serve(t, Sleep)
	for _, ask := range []func() (*http.Response, []byte){
		func() (*http.Response, []byte) { return do(t, http.MethodPost, s.URL, strings.NewReader("20")) },
		func() (*http.Response, []byte) { return do(t, http.MethodPost, s.URL, strings.NewReader("20.0\n")) },
		func() (*http.Response, []byte) { return do(t, http.MethodGet, s.URL+"/?ms=20", nil) },
	} {
		begin := clock.Mono()
		answer, _ := ask()
		if took := time.Duration(clock.Mono() - begin); took < 20*time.Millisecond || answer.StatusCode != http.StatusOK {
			t.Errorf("status %d after %s, want 200 after at least 20ms", answer.StatusCode, took)
		}
	}
}

func TestSleepEndsWithItsClient(t *testing.T) {
	done := make(chan struct{})
	s := start(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sleep(w, r)
		close(done)
	})))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/?ms=3600000", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Fatal("a sleep of an hour has been answered")
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("the sleep goes on after its client has gone")
	}
}

// A second thread that computes must not shorten what burn itself uses.
func TestBurnUsesItsThreadsTime(t *testing.T) {
	s := serve(t, Burn)
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = use(busy, time.Second, 0) }()
	begin := clock.Mono()
	answer, _ := do(t, http.MethodGet, s.URL+"/?ms=30&mb=2", nil)
	if took := time.Duration(clock.Mono() - begin); took < 30*time.Millisecond || answer.StatusCode != http.StatusOK {
		t.Errorf("status %d after %s, want 200 after at least 30ms", answer.StatusCode, took)
	}
}

func TestBurnEndsWithItsClient(t *testing.T) {
	done := make(chan struct{})
	s := start(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		burn(w, r)
		close(done)
	})))
	c := dial(t, s)
	begin := clock.Mono()
	c.say("GET /?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
	time.Sleep(10 * time.Millisecond)
	c.Close()
	<-done
	if took := time.Duration(clock.Mono() - begin); took > BurnMax/2 {
		t.Errorf("burned for %s after its client had gone", took)
	}
}

func TestBadInputIsAnsweredInOneLine(t *testing.T) {
	for _, c := range []struct {
		workload, query, body string
		status                int
		says                  string
	}{
		{Sleep, "", "", 400, `ms: "" is not a number from 0 to 3600000`},
		{Sleep, "", "soon", 400, `ms: "soon" is not a number`},
		{Sleep, "?ms=-1", "", 400, `ms: "-1" is not a number`},
		{Sleep, "?ms=NaN", "", 400, `ms: "NaN" is not a number`},
		{Sleep, "?ms=3600001", "", 400, `ms: "3600001" is not a number`},
		{Sleep, "", strings.Repeat("1", 65), 413, "body is over the bound of 64 bytes"},
		{Burn, "?ms=60001", "", 400, `ms: "60001" is not a number from 0 to 60000`},
		{Burn, "?mb=4001", "", 400, `mb: "4001" is not a number from 0 to 4000`},
		{Burn, "?ms=x", "", 400, `ms: "x" is not a number`},
	} {
		answer, got := do(t, http.MethodPost, serve(t, c.workload).URL+"/"+c.query, strings.NewReader(c.body))
		if answer.StatusCode != c.status || !strings.Contains(string(got), c.says) {
			t.Errorf("%s%s %.10q: status %d %q, want %d %q", c.workload, c.query, c.body, answer.StatusCode, got, c.status, c.says)
		}
		if bytes.Count(got, []byte("\n")) != 1 {
			t.Errorf("%s%s: answer is not one line: %q", c.workload, c.query, got)
		}
	}
}

func TestBodyBound(t *testing.T) {
	for _, name := range []string{PayloadEcho, PayloadRecv} {
		s := serve(t, name)
		answer, _ := do(t, http.MethodPost, s.URL, unsized{io.LimitReader(zeros{}, BodyMax+1)})
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: chunked body over the bound: status %d", name, answer.StatusCode)
		}
		if got := raw(t, s, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BodyMax+1)); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
			t.Errorf("%s: declared body over the bound: %.40q", name, got)
		}
		if got := raw(t, s, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nshort"); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%s: body that ends early: %.40q", name, got)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// raw sends text, closes that direction and reads the answer.
func raw(t *testing.T, s site, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil && len(got) == 0 {
		t.Fatal(err)
	}
	return string(got)
}

func TestEveryNameHasAHandler(t *testing.T) {
	for _, name := range Names() {
		if _, err := Handler(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := Handler("payload"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got error %v, want %v", err, ErrUnknown)
	}
}

// A request in flight is answered, and a new connection is refused.
func TestServeStopsGracefully(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(started)
			sleep(w, r)
			_, _ = io.WriteString(w, "slept")
		}))
	}()
	go func() { <-started; cancel() }()
	if _, got := do(t, http.MethodGet, "http://"+l.Addr().String()+"/?ms=100", nil); string(got) != "slept" {
		t.Errorf("request in flight was answered %q", got)
	}
	if err := <-done; err != nil {
		t.Errorf("graceful stop: %v", err)
	}
	if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
}

func TestServeReportsItsListener(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), l, http.NotFoundHandler()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got error %v, want %v", err, net.ErrClosed)
	}
}

// FuzzMillis holds that what is read lies within the bound, whatever the text.
func FuzzMillis(f *testing.F) {
	for _, s := range []string{"", "5", "1.5", "-0", "NaN", "Inf", "1e400", "0x1p-2", "3600000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseMillis(text, SleepMax)
		if err == nil && (d < 0 || d > SleepMax) {
			t.Errorf("%q is read as %s", text, d)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("error for %q is more than a line: %q", text, err)
		}
	})
}
