package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

// start serves a workload as skerry-agent does and gives its address.
func start(t testing.TB, name string) string {
	t.Helper()
	h, err := workload.Handler(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := workload.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- workload.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// startFunc serves a handler of the test's own.
func startFunc(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// startRaw serves each connection by hand; serve returns to close it.
func startRaw(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// Timeouts of a request: of one that is answered, also by a machine with much else to
// do, and of one that is not.
const (
	patience   = quantity.Duration(20 * time.Second)
	impatience = quantity.Duration(500 * time.Millisecond)
)

func run(t *testing.T, s Spec) []sample.Request {
	t.Helper()
	result, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return result.Requests
}

// ordered holds that an answered request has its times in their order.
func ordered(t *testing.T, rows []sample.Request) {
	t.Helper()
	for i, r := range rows {
		if r.Error == "" && !(0 < r.ScheduledNs && r.ScheduledNs <= r.SentNs && r.SentNs <= r.FirstByteNs && r.FirstByteNs <= r.LastByteNs) {
			t.Errorf("row %d: times out of order: %+v", i, r)
		}
	}
}

func errorsOf(rows []sample.Request) []string {
	var list []string
	for _, r := range rows {
		list = append(list, r.Error)
	}
	return list
}

func TestEveryWorkloadIsAnswered(t *testing.T) {
	for _, s := range []Spec{
		{Workload: workload.PayloadEcho},
		{Workload: workload.PayloadEcho, Size: 60},
		{Workload: workload.PayloadEcho, Size: 100e3},
		{Workload: workload.PayloadEcho, Size: 1e6},
		{Workload: workload.PayloadRecv, Size: 1e6},
		{Workload: workload.StaticReply},
		{Workload: workload.HelloWorld},
		{Workload: workload.Sleep, Work: Work{Time: quantity.Duration(2500 * time.Microsecond)}},
		{Workload: workload.Burn, Work: Work{Time: quantity.Duration(time.Millisecond), Memory: 1.5e6}},
	} {
		for _, s.Connection = range []string{Kept, New} {
			s.Target, s.Threads, s.Iterations, s.Warmup = start(t, s.Workload), 3, 4, 2
			rows := run(t, s)
			if len(rows) != 18 {
				t.Errorf("%s %s: %d rows, want 18", s.Workload, s.Size, len(rows))
			}
			ordered(t, rows)
			for i, r := range rows {
				if r.Error != "" || r.Status != 200 || r.Thread != int32(i/6) || r.Warmup != (i%6 < 2) {
					t.Errorf("%s %s: row %d: %+v", s.Workload, s.Size, i, r)
				}
				if asked := s.Time.Std(); time.Duration(r.ResponseNs()) < asked {
					t.Errorf("%s: answered after %d ns, asked for %s", s.Workload, r.ResponseNs(), asked)
				}
			}
		}
	}
}

// numbers are connection and index of each row, in order.
func numbers(rows []sample.Request) (list [][2]int32) {
	for _, r := range rows {
		list = append(list, [2]int32{r.Connection, r.Index})
	}
	return list
}

func TestConnectionNumbers(t *testing.T) {
	var served atomic.Int32
	closing := startFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%2 == 0 {
			w.Header().Set("Connection", "close")
		}
	})
	hello := start(t, workload.HelloWorld)
	for _, c := range []struct {
		name, target, connection string
		want                     [][2]int32
	}{
		{"kept", hello, Kept, [][2]int32{{1, 1}, {1, 2}, {1, 3}, {1, 4}}},
		{"kept by default", hello, "", [][2]int32{{1, 1}, {1, 2}, {1, 3}, {1, 4}}},
		{"new", hello, New, [][2]int32{{1, 1}, {2, 1}, {3, 1}, {4, 1}}},
		{"server closes every second", closing, Kept, [][2]int32{{1, 1}, {1, 2}, {2, 1}, {2, 2}}},
	} {
		rows := run(t, Spec{Target: c.target, Workload: workload.HelloWorld, Iterations: 4, Connection: c.connection})
		if got := numbers(rows); !slices.Equal(got, c.want) {
			t.Errorf("%s: connection and index %v, want %v", c.name, got, c.want)
		}
		if got := errorsOf(rows); !slices.Equal(got, make([]string, 4)) {
			t.Errorf("%s: errors %q", c.name, got)
		}
	}
}

// On a connection that the server has closed since its answer nothing more is asked.
func TestClosedWhileIdle(t *testing.T) {
	target := startRaw(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	rows := run(t, Spec{Target: target, Workload: workload.HelloWorld, Iterations: 3, Connection: Kept, Think: quantity.Duration(200 * time.Millisecond)})
	if got, want := numbers(rows), [][2]int32{{1, 1}, {2, 1}, {3, 1}}; !slices.Equal(got, want) {
		t.Errorf("connection and index %v, want %v", got, want)
	}
	if got := errorsOf(rows); !slices.Equal(got, make([]string, 3)) {
		t.Errorf("errors %q", got)
	}
}

// The server's own count of connections must agree with the rows.
func TestServerSeesTheSameConnections(t *testing.T) {
	for connection, want := range map[string]int32{Kept: 3, New: 15} {
		var opened atomic.Int32
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		s.Start()
		run(t, Spec{Target: s.Listener.Addr().String(), Workload: workload.HelloWorld, Threads: 3, Iterations: 5, Connection: connection})
		s.Close()
		if got := opened.Load(); got != want {
			t.Errorf("%s: the server saw %d connections, want %d", connection, got, want)
		}
	}
}

func TestThinkTimeIsHonouredAndNotCharged(t *testing.T) {
	const think = 30 * time.Millisecond
	rows := run(t, Spec{Target: start(t, workload.HelloWorld), Workload: workload.HelloWorld, Threads: 2, Iterations: 4, Think: quantity.Duration(think)})
	ordered(t, rows)
	for i := 1; i < len(rows); i++ {
		if rows[i].Thread != rows[i-1].Thread {
			continue
		}
		if gap := time.Duration(rows[i].ScheduledNs - rows[i-1].LastByteNs); gap < think {
			t.Errorf("row %d is due %s after the answer before it, want at least %s", i, gap, think)
		}
	}
}

func TestErrorClasses(t *testing.T) {
	const closing = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
	for _, c := range []struct {
		name, answer, want string
	}{
		{"right", closing + "\x00\x00\x00\x00", classWrongBody}, // zeros are not the random payload
		{"short by its own count", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", classShortBody},
		{"cut short", closing + "ab", classShortBody},
		{"long", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", classLongBody},
		{"endless", "HTTP/1.1 200 OK\r\n\r\n" + string(make([]byte, answerMin+2)), classLongBody},
		{"trailing", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcdEXTRA", classTrailing},
		{"no answer", "", classClosed},
		{"cut header", "HTTP/1.1 200 OK\r\nContent-Le", classShortHead},
		{"not HTTP", "SSH-2.0-OpenSSH_9.9\r\n\r\n", classMalformed},
		{"interim for ever", repeat("HTTP/1.1 103 Early Hints\r\n\r\n", interimMax+1), classMalformed},
		{"status", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy", "status 503"},
		{"redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "status 302"},
	} {
		target := startRaw(t, func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, c.answer)
		})
		result, err := Run(t.Context(), Spec{Target: target, Workload: workload.PayloadEcho, Size: 4, Iterations: 1})
		rows := result.Requests
		if !errors.Is(err, ErrNoAnswer) || len(rows) != 1 {
			t.Errorf("%s: %d rows, error %v", c.name, len(rows), err)
			continue
		}
		if rows[0].Error != c.want {
			t.Errorf("%s: classed as %q, want %q", c.name, rows[0].Error, c.want)
		}
	}
}

func repeat(s string, n int) string {
	out := ""
	for range n {
		out += s
	}
	return out
}

// readRequest reads a request of Size 4 to its end.
func readRequest(conn net.Conn) {
	buf, n := make([]byte, 4096), 0
	for {
		k, err := conn.Read(buf[n:])
		n += k
		if err != nil || n >= 8 && string(buf[n-8:n-4]) == "\r\n\r\n" {
			return
		}
	}
}

func TestAnswersThatAreCorrectHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: t\r\n\r\n",
		"to the end":    "HTTP/1.1 200 OK\r\n\r\nhello",
		"HTTP/1.0":      "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"early hints":   "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"no content":    "HTTP/1.1 204 No Content\r\n\r\n",
		"lower case":    "HTTP/1.1 201 created\r\ncontent-length: 5\r\nconnection: CLOSE\r\n\r\nhello",
		"empty, closed": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	} {
		target := startRaw(t, func(conn net.Conn) {
			readRequest(conn)
			// Byte by byte, as a slow path would deliver it.
			for i := range len(answer) {
				if _, err := io.WriteString(conn, answer[i:i+1]); err != nil {
					return
				}
			}
		})
		rows := run(t, Spec{Target: target, Workload: workload.PayloadRecv, Size: 4, Iterations: 1})
		ordered(t, rows)
		if got := errorsOf(rows); !slices.Equal(got, []string{""}) {
			t.Errorf("%s: errors %q", name, got)
		}
	}
}

func TestLyingServer(t *testing.T) {
	var served atomic.Int32
	target := startFunc(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if served.Add(1) == 3 {
			body[len(body)/2] ^= 1
		}
		_, _ = w.Write(body)
	})
	rows := run(t, Spec{Target: target, Workload: workload.PayloadEcho, Size: 100e3, Iterations: 4})
	if got, want := errorsOf(rows), []string{"", "", classWrongBody, ""}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	// The protocol was kept, so the connection is.
	if got, want := numbers(rows), [][2]int32{{1, 1}, {1, 2}, {1, 3}, {1, 4}}; !slices.Equal(got, want) {
		t.Errorf("connection and index %v, want %v", got, want)
	}
}

func TestTimeoutIsARowAndANewConnection(t *testing.T) {
	t.Parallel() // it sleeps
	var served atomic.Int32
	target := startFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 2 {
			<-r.Context().Done()
		}
	})
	rows := run(t, Spec{Target: target, Workload: workload.HelloWorld, Iterations: 3, Timeout: impatience})
	if got, want := errorsOf(rows), []string{"", classTimeout, ""}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	if got, want := numbers(rows), [][2]int32{{1, 1}, {1, 2}, {2, 1}}; !slices.Equal(got, want) {
		t.Errorf("connection and index %v, want %v", got, want)
	}
	if r := rows[1]; r.SentNs == 0 || r.FirstByteNs != 0 || r.LastByteNs != 0 || r.Status != 0 {
		t.Errorf("a request without an answer: %+v", r)
	}
	if gap := time.Duration(rows[2].ScheduledNs - rows[1].SentNs); gap < time.Duration(impatience)+backoff {
		t.Errorf("next request came %s after the one that failed, want the timeout and the backoff", gap)
	}
}

func TestResetIsARow(t *testing.T) {
	var opened atomic.Int32
	target := startRaw(t, func(conn net.Conn) {
		if opened.Add(1) == 2 {
			_ = conn.(*net.TCPConn).SetLinger(0)
			readRequest(conn)
			return
		}
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	rows := run(t, Spec{Target: target, Workload: workload.PayloadRecv, Size: 4, Iterations: 3, Connection: New})
	if got, want := errorsOf(rows), []string{"", classReset, ""}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
}

// Targets that refuse at once do not end a load before one that takes its time has answered.
func TestSlowAnswerAmongFastFailures(t *testing.T) {
	t.Parallel() // it sleeps
	for name, s := range map[string]Spec{
		"closed": {Iterations: 6},
		"timed":  {OpenLoop: OpenLoop{Duration: quantity.Duration(time.Second)}},
		"open":   {OpenLoop: OpenLoop{Rate: 60, Duration: quantity.Duration(time.Second)}},
	} {
		var asked atomic.Int32
		s.Target = startFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) != 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			time.Sleep(800 * time.Millisecond)
		})
		s.Workload, s.Threads = workload.HelloWorld, 6
		if name == "timed" {
			s.Targets, s.Target, s.Threads = []Target{{s.Target, 6}}, "", 0
		}
		result, err := Run(t.Context(), s)
		if got := errorsOf(result.Requests); err != nil || len(result.Requests) <= failuresMax || !slices.Contains(got, "") {
			t.Errorf("%s: %d rows, %q, %v; want more than %d, one of them answered", name, len(result.Requests), got, err, failuresMax)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr().String()
	l.Close()
	result, err := Run(t.Context(), Spec{Target: target, Workload: workload.HelloWorld, Threads: 10, Iterations: 1000})
	rows := result.Requests
	if !errors.Is(err, ErrNoAnswer) {
		t.Fatalf("got error %v, want %v", err, ErrNoAnswer)
	}
	if want := `no answer from ` + target + `: the first 20 requests failed, the last with "dial refused"`; err.Error() != want {
		t.Errorf("got error %q, want %q", err, want)
	}
	// The threads that did not stop the load may have had one more under way.
	if len(rows) < failuresMax-10 || len(rows) > failuresMax+10 {
		t.Errorf("%d rows of a load that ends after %d failures", len(rows), failuresMax)
	}
	for i, r := range rows {
		if r.Error != "dial refused" || r.SentNs != 0 || r.Status != 0 || r.Index != 1 || r.Connection == 0 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// Once there has been an answer, no number of failures ends the load.
func TestFailuresAfterAnAnswerAreRows(t *testing.T) {
	t.Parallel() // it sleeps
	var served atomic.Int32
	target := startFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	rows := run(t, Spec{Target: target, Workload: workload.HelloWorld, Threads: 8, Iterations: 4})
	failed := slices.DeleteFunc(errorsOf(rows), func(e string) bool { return e != "status 503" })
	if len(rows) != 32 || len(failed) != 31 {
		t.Errorf("%d rows, %d of them status 503; want 32 and 31", len(rows), len(failed))
	}
}

func TestCancelReturnsWhatIsComplete(t *testing.T) {
	var served atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	target := startFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		if served.Add(1) > 10 {
			cancel()
			<-r.Context().Done()
		}
	})
	result, err := Run(ctx, Spec{Target: target, Workload: workload.HelloWorld, Threads: 2, Iterations: 1000, Timeout: quantity.Duration(time.Hour)})
	rows := result.Requests
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	ordered(t, rows)
	// The other thread may have been stopped with its answer on the way.
	if len(rows) < 9 || len(rows) > 10 || slices.ContainsFunc(rows, func(r sample.Request) bool { return r.Error != "" || r.Index == 0 }) {
		t.Errorf("%d rows, want the 10 that were answered: %+v", len(rows), rows)
	}
}

func TestCancelEndsThinking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := startFunc(t, func(http.ResponseWriter, *http.Request) { time.AfterFunc(20*time.Millisecond, cancel) })
	result, err := Run(ctx, Spec{Target: target, Workload: workload.HelloWorld, Iterations: 2, Think: quantity.Duration(time.Hour)})
	rows := result.Requests
	if !errors.Is(err, context.Canceled) || len(rows) != 1 {
		t.Errorf("%d rows and error %v, want 1 and %v", len(rows), err, context.Canceled)
	}
}

func TestTargetByName(t *testing.T) {
	_, port, err := net.SplitHostPort(start(t, workload.HelloWorld))
	if err != nil {
		t.Fatal(err)
	}
	if addrs, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip4", "localhost"); err != nil || !addrs[0].Unmap().IsLoopback() {
		t.Skipf("this host does not know localhost: %v", err)
	}
	run(t, Spec{Target: "localhost:" + port, Workload: workload.HelloWorld, Iterations: 1})
}
