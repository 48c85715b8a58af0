package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// verbs answers by path, one for each rule of the conversation.
func verbs(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			refuseBody(w, err)
			return
		}
		_, _ = w.Write(body)
	case "/skip":
		_, _ = io.WriteString(w, "skipped")
	case "/wait":
		// Starts the watcher, if the body has been read.
		_ = r.Context().Done()
		_, _ = io.WriteString(w, "waited")
	case "/close":
		w.Header().Set("Connection", "close")
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		_, _ = io.WriteString(w, "not sent")
	case "/split":
		w.Header().Set("X-Text", "a\r\nInjected: b")
	case "/wrong":
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Transfer-Encoding", "chunked")
		_, _ = io.WriteString(w, "one ")
		_, _ = io.WriteString(w, "two")
	case "/panic":
		panic("handler's own bug")
	default:
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "hi")
	}
}

const (
	hi       = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	hiLast   = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
	get      = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	skipped  = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nskipped"
	skipLast = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 7\r\n\r\nskipped"
)

// refused is the answer to what no handler sees.
func refused(status string) string {
	text := status[4:] + "\n"
	return fmt.Sprintf("HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\r\n%s", status, len(text), text)
}

// Every conversation is sent whole and then ended, so a request that follows
// another is pipelined; that it is answered shows that the connection was kept.
func TestConversations(t *testing.T) {
	s := start(t, newServer(http.HandlerFunc(verbs)))
	for _, c := range []struct{ name, says, hears string }{
		{"nothing", "", ""},
		{"one request", get, hi},
		{"pipelined", get + get + get, hi + hi + hi},
		{"1.1 close", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + get, hiLast},
		{"1.0", "GET / HTTP/1.0\r\n\r\n" + get, strings.Replace(hiLast, "1.1", "1.0", 1)},
		{"1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get,
			"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi" + hi},
		{"handler closes", "GET /close HTTP/1.1\r\nHost: x\r\n\r\n" + get,
			"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + hi},
		{"HEAD of undeclared length", "HEAD /skip HTTP/1.1\r\nHost: x\r\n\r\n" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n" + hi},
		{"no content", "GET /none HTTP/1.1\r\nHost: x\r\n\r\n" + get, "HTTP/1.1 204 No Content\r\n\r\n" + hi},
		{"body", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc" + hi},
		{"chunks", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde" + hi},
		{"body left", "POST /skip HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get, skipped + hi},
		{"body left to the bound", post("/skip", drainMax) + get, skipped + hi},
		{"body left over the bound", post("/skip", drainMax+1) + get, skipLast},
		{"chunks left over the bound", "POST /skip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", drainMax+1, zeroes(drainMax+1)) + get, skipLast},
		{"body ends early", "POST /skip HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", skipLast},
		{"broken chunk", "POST /skip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" + get, skipLast},
		{"watched, then another", "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwaited" + hi},
		{"watch with a body unread", "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwaited" + hi},
		{"handler's length is wrong", "GET /wrong HTTP/1.1\r\nHost: x\r\n\r\n" + get,
			"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\none two" + hi},
		{"field of two lines", "GET /split HTTP/1.1\r\nHost: x\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Text: a  Injected: b\r\n\r\n"},
		{"panic", "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n" + get, ""},
		{"malformed", "hello\r\n\r\n" + get, refused("400 Bad Request")},
		{"malformed after a good one", get + "GET / HTTP/1.1\r\nno colon\r\n\r\n", hi + refused("400 Bad Request")},
		{"header ends early", "GET / HTTP/1.1\r\nHost:", refused("400 Bad Request")},
		{"no host", "GET / HTTP/1.1\r\n\r\n", refused("400 Bad Request")},
		{"version 2 as if it were 1", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", refused("505 HTTP Version Not Supported")},
		{"unknown expectation", "POST / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 3\r\n\r\nabc", refused("417 Expectation Failed")},
		{"long header", "GET / HTTP/1.1\r\nHost: x\r\nX: " + zeroes(headerMax/2) + "\r\n\r\n", hi},
		{"header too long", "GET / HTTP/1.1\r\nHost: x\r\nX: " + zeroes(headerMax+8<<10) + "\r\n\r\n", refused("431 Request Header Fields Too Large")},
		{"line too long", "GET /" + zeroes(headerMax+8<<10), refused("431 Request Header Fields Too Large")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := raw(t, s, c.says); got != c.hears {
				t.Errorf("heard %.400q\nwant  %.400q", got, c.hears)
			}
		})
	}
}

func zeroes(n int) string { return strings.Repeat("0", n) }

func post(path string, n int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, n, zeroes(n))
}

// talk is a connection whose test says and hears in turn.
type talk struct {
	*testing.T
	*net.TCPConn
}

func dial(t *testing.T, s site) talk {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return talk{t, conn.(*net.TCPConn)}
}

func (c talk) say(text string) {
	c.Helper()
	if _, err := io.WriteString(c.TCPConn, text); err != nil {
		c.Fatal(err)
	}
}

// hear reads exactly what is wanted; more is read by the next.
func (c talk) hear(want string) {
	c.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.TCPConn, got); err != nil || string(got) != want {
		c.Fatalf("heard %q (%v), want %q", got[:n], err, want)
	}
}

func (c talk) hearEnd() {
	c.Helper()
	if rest, err := io.ReadAll(c.TCPConn); err != nil || len(rest) != 0 {
		c.Fatalf("heard %q (%v), want the end", rest, err)
	}
}

const expect = " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"

func TestContinueIsSaidWhenTheBodyIsRead(t *testing.T) {
	s := start(t, newServer(http.HandlerFunc(verbs)))
	c := dial(t, s)
	for range 2 {
		c.say("POST /echo" + expect)
		c.hear("HTTP/1.1 100 Continue\r\n\r\n")
		c.say("abc")
		c.hear("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
	}
	// A body that nobody reads is not asked for; whether it comes is then
	// unknown, so the connection ends.
	c.say("POST /skip" + expect)
	c.hear(skipLast)
	c.hearEnd()
}

func TestAnswerComesBeforeALongBodyThatIsRefused(t *testing.T) {
	s := start(t, newServer(http.HandlerFunc(verbs)))
	c := dial(t, s)
	c.say("POST /skip HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	c.hear(skipLast)
	c.hearEnd()
}

func TestPanicEndsItsConnectionOnly(t *testing.T) {
	s := start(t, newServer(http.HandlerFunc(verbs)))
	other, bad := dial(t, s), dial(t, s)
	other.say(get)
	other.hear(hi)
	bad.say("GET /panic HTTP/1.1\r\nHost: x\r\n\r\n")
	bad.hearEnd()
	other.say(get)
	other.hear(hi)
}

// A request may come in pieces, and requests may follow each other at any time.
func TestRequestInPieces(t *testing.T) {
	s := start(t, newServer(http.HandlerFunc(verbs)))
	c := dial(t, s)
	text := "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	for i := range len(text) {
		c.say(text[i : i+1])
	}
	c.hear("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
	c.say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	c.hear("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwaited")
	c.say(get)
	c.hear(hi)
}

// tapped is a listener whose connections record what is written to them.
type tapped struct {
	net.Listener
	mu     sync.Mutex
	writes [][]byte
}

type tap struct {
	net.Conn
	to *tapped
}

func (l *tapped) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return tap{conn, l}, err
}

func (c tap) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.writes = append(c.to.writes, p)
	c.to.mu.Unlock()
	return c.Conn.Write(p)
}

func TestOneWrite(t *testing.T) {
	large := bytes.Repeat([]byte("x"), gatherMin)
	for _, c := range []struct {
		body   []byte
		writes int
	}{
		{nil, 1},
		{large[:100], 1},
		{large[:gatherMin-1], 1},
		// The tap is no TCP connection: there the two parts are one writev.
		{large, 2},
	} {
		l, err := Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tap := &tapped{Listener: l}
		s := startOn(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, c.body) })), tap)
		if _, got := do(t, http.MethodGet, s.URL, nil); !bytes.Equal(got, c.body) {
			t.Errorf("%d bytes of %d came", len(got), len(c.body))
		}
		tap.mu.Lock()
		if len(tap.writes) != c.writes {
			t.Errorf("body of %d bytes is sent by %d writes, want %d", len(c.body), len(tap.writes), c.writes)
		}
		if c.writes == 2 && &tap.writes[1][0] != &c.body[0] {
			t.Error("a large body is copied before it is sent")
		}
		tap.mu.Unlock()
	}
}

func TestCurlSendsAMegabyte(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl on this host")
	}
	body := random(1_500_000)
	command := exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--verbose", "--http1.1",
		"--header", "Expect: 100-continue", "--data-binary", "@-", serve(t, PayloadEcho).URL)
	var talk bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(body), &talk
	got, err := command.Output()
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("curl: %v, %d bytes\n%s", err, len(got), &talk)
	}
	if !strings.Contains(talk.String(), "< HTTP/1.1 100 Continue") {
		t.Errorf("curl was not told to continue:\n%s", &talk)
	}
}

// methods records the method of each request that a handler sees.
type methods struct {
	mu  sync.Mutex
	all []string
}

func (m *methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.all = append(m.all, r.Method)
	m.mu.Unlock()
	verbs(w, r)
}

// FuzzConversation holds that whatever bytes come, the connection ends, and that
// what was answered is a row of whole HTTP answers, no more than one a request
// and the refusal of what came after.
func FuzzConversation(f *testing.F) {
	for _, s := range []string{
		"", get, get + get, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + get, "GET / HTTP/1.0\r\n\r\n", "hello\r\n\r\n",
		"POST /echo" + expect + "abc" + get, "POST /skip" + expect, post("/skip", 10) + get, post("/wait", 3) + get,
		"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n" + get,
		"GET /wait HTTP/1.1\r\nHost: x\r\n\r\nGET /wrong HTTP/1.1\r\nHost: x\r\n\r\n", "GET /none HTTP/1.1\r\nHost: x\r\n\r\n" + get,
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc", "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		var seen methods
		s := start(t, newServer(&seen))
		heard := bufio.NewReader(strings.NewReader(raw(t, s, string(said))))
		seen.mu.Lock()
		defer seen.mu.Unlock()
		answers := 0
		for {
			if _, err := heard.Peek(1); err == io.EOF {
				break
			}
			request := &http.Request{Method: http.MethodGet}
			if answers < len(seen.all) {
				request.Method = seen.all[answers]
			}
			a, err := http.ReadResponse(heard, request)
			if err != nil {
				t.Fatalf("answer %d: %v", answers, err)
			}
			if _, err := io.Copy(io.Discard, a.Body); err != nil {
				t.Fatalf("body of answer %d: %v", answers, err)
			}
			if a.StatusCode != http.StatusContinue {
				answers++
			}
		}
		if answers > len(seen.all)+1 {
			t.Errorf("%d answers to %d requests", answers, len(seen.all))
		}
	})
}

// BenchmarkServe asks for hello-world over one connection, of our server and of
// net/http's. "warm" asks again at once; "idle" waits about a millisecond before
// each, so that the threads of the server have gone to sleep. The median is of
// the response times, without the waits.
func BenchmarkServe(b *testing.B) {
	h, err := Handler(HelloWorld)
	if err != nil {
		b.Fatal(err)
	}
	for _, think := range []time.Duration{0, time.Millisecond} {
		name := "warm"
		if think > 0 {
			name = "idle"
		}
		b.Run(name+"/ours", func(b *testing.B) { ask(b, start(b, newServer(h)).addr, think) })
		b.Run(name+"/net-http", func(b *testing.B) { ask(b, startNetHTTP(b, h), think) })
	}
}

func startNetHTTP(b *testing.B, h http.Handler) string {
	l, err := Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	b.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// ask is the load's manner: one goroutine, one write, one answer. The wait is
// drawn so that it keeps no step with a timer of the host.
func ask(b *testing.B, addr string, think time.Duration) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(1, 0))
	in, request := bufio.NewReader(conn), []byte(get)
	var took []time.Duration
	for b.Loop() {
		if think > 0 {
			time.Sleep(think/2 + time.Duration(r.Int64N(int64(think))))
		}
		begin := time.Now()
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "ns/median")
}
