package gateway

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
)

// What a client says as it calls is read at once, nothing of it twice and no more than
// fits; one that waits for its service is not held up, and loses nothing.
func TestFirst(t *testing.T) {
	var f firsts
	for name, c := range map[string]struct {
		says string
		rtt  time.Duration
		want int
	}{
		"a request":          {"GET / HTTP/1.1\r\n\r\n", time.Second, 18},
		"a long one":         {strings.Repeat("x", 2*firstBytes), time.Second, firstBytes},
		"nothing":            {"", time.Second, 0},
		"a peer next door":   {"hello", 0, 5},
		"a peer almost here": {"hello", firstPart - 1, 5},
	} {
		client, app := conntest.Pair(t)
		_, _ = io.WriteString(client, c.says)
		conntest.Await(t, "all that "+name+" says", func() bool { return unread(t, app) == len(c.says) })
		first := f.read(app, c.rtt)
		if len(first) != c.want {
			t.Errorf("%s: %d bytes come first, want %d", name, len(first), c.want)
		}
		_, _ = io.WriteString(client, "!")
		client.Close()
		rest, err := io.ReadAll(app)
		if got := string(first) + string(rest); got != c.says+"!" || err != nil {
			t.Errorf("%s: heard %d bytes of %d, %v", name, len(got), len(c.says)+1, err)
		}
	}
}

// unread is how many bytes have come that nobody has read.
func unread(t *testing.T, conn *net.TCPConn) (n int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	closed := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	if err := errors.Join(closed, err); err != nil {
		t.Fatal(err)
	}
	return n
}
