package userspace

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

// What comes after bulk, and is less than epoll tells of there, comes through as well: from one,
// and from a crowd.
func TestLittleAfterBulk(t *testing.T) {
	for _, count := range []int{1, crowdLeast} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			p, at := planeOf(t, planetest.New(conntest.Listen(t, conntest.Echo)), Config{Loops: 1})
			var all sync.WaitGroup
			for range count {
				conn := conntest.Dial(t, at)
				all.Go(func() { saysMuchAndLittle(t, conn) })
			}
			all.Wait()
			if n := p.Counts(); n.Spliced < int64(count)*20<<20 {
				t.Errorf("%d bytes of %d times 24 MB each way went by a pipe", n.Spliced, count)
			}
		})
	}
}

// saysMuchAndLittle says what comes back, by turns.
func saysMuchAndLittle(t *testing.T, conn net.Conn) {
	for i, size := range []int{8 << 20, 1, 8 << 20, bulkMark - 1, 100, 100, 100, 100, 100, 100, 100, 100, 100, 8 << 20, 1, crowdMark - 1} {
		sent, got := make([]byte, size), make([]byte, size)
		_, _ = rand.Read(sent)
		go func() { _, _ = conn.Write(sent) }()
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes, the %d. time, did not come back: %v", size, i+1, err)
			return
		}
	}
}

// A crowd is one as soon as enough have joined, for the window after, and no longer.
func TestCrowd(t *testing.T) {
	var c crowd
	sides := make([]side, crowdLeast)
	join := func(at time.Duration, count int) {
		for i := range count {
			c.joins(&sides[i], at)
			c.joins(&sides[i], at)
		}
	}
	for _, step := range []struct {
		at    time.Duration
		count int
		is    bool
	}{
		{0, crowdLeast - 1, false},
		{crowdWindow - 1, crowdLeast, true},
		{crowdWindow, 1, true},
		{2 * crowdWindow, 1, false},
		{3 * crowdWindow, crowdLeast, true},
		{5 * crowdWindow, 1, false},
	} {
		if join(step.at, step.count); c.crowded() != step.is {
			t.Errorf("at %v %d have joined: crowded is %t", step.at, step.count, c.crowded())
		}
	}
}
