package gateway

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// What a client says as it calls is read at once, nothing of it twice and no more than
// fits; one that waits for its service is not held up, and loses nothing.
func TestFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var f firsts
	for name, c := range map[string]struct {
		says string
		rtt  time.Duration
		want int
	}{
		"a request":          {"GET / HTTP/1.1\r\n\r\n", time.Second, 18},
		"a long one":         {strings.Repeat("x", 2*firstBytes), time.Second, firstBytes},
		"nothing":            {"", time.Second, 0},
		"a peer next door":   {"hello", 0, 0},
		"a peer almost here": {"hello", firstPart - 1, 0},
	} {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(client, c.says)
		app, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // it has come
		first := f.read(app.(transport.Conn), c.rtt)
		if len(first) != c.want {
			t.Errorf("%s: %d bytes come first, want %d", name, len(first), c.want)
		}
		_, _ = io.WriteString(client, "!")
		client.Close()
		rest, err := io.ReadAll(app)
		if got := string(first) + string(rest); got != c.says+"!" || err != nil {
			t.Errorf("%s: heard %d bytes of %d, %v", name, len(got), len(c.says)+1, err)
		}
		app.Close()
	}
}
