package userspace

import (
	"flag"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

// useUp leaves no descriptor, until giveBack; giveOne gives one back.
func useUp(t *testing.T) (giveOne, giveBack func()) {
	t.Helper()
	some, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	taken := []int{some}
	giveOne = func() {
		_ = syscall.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	giveBack = sync.OnceFunc(func() {
		for len(taken) > 0 {
			giveOne()
		}
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) // as it was a moment ago
	})
	t.Cleanup(giveBack)
	few := was
	few.Cur = uint64(some + 100)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	for fd, err := syscall.Dup(some); err == nil; fd, err = syscall.Dup(some) {
		taken = append(taken, fd)
	}
	return giveOne, giveBack
}

// Without descriptors a connection is refused, and none waits, nor is an endpoint blamed that
// could not be called; with some again the next is served.
func TestNoDescriptors(t *testing.T) {
	c := planetest.New(conntest.Listen(t, conntest.Echo))
	p, at := planeOf(t, c, Config{Loops: 1})
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("x"))
	_, _ = io.ReadFull(conn, make([]byte, 1))
	var clients [2]int
	for i := range clients {
		var err error
		if clients[i], err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(clients[i]) })
	}
	giveOne, giveBack := useUp(t)
	to := netip.MustParseAddrPort(at)
	for i, client := range clients {
		_ = syscall.Connect(client, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}) // it may be reset as it calls
		conntest.Await(t, "it is refused", func() bool { return p.Counts().Refused == int64(i+1) })
		giveOne() // enough to accept the next, and not to call for it
	}
	if failed, gone := c.Count(dataplane.Failed), c.Count(dataplane.Gone); failed != 0 || gone != 3 {
		t.Errorf("%d have failed, %d came to nothing", failed, gone)
	}
	giveBack()
	other := conntest.Dial(t, at)
	_, _ = other.Write([]byte("y"))
	if _, err := io.ReadFull(other, make([]byte, 1)); err != nil {
		t.Errorf("with descriptors again: %v", err)
	}
}

// connections is how many TestNothingLeaks makes; make show has it make 100,000.
var connections = flag.Int("connections", 5000, "how many connections TestNothingLeaks makes")

// After any mixture of ends no counter and no descriptor is left over.
func TestNothingLeaks(t *testing.T) {
	count := *connections
	c := planetest.New(conntest.Listen(t, misbehave), conntest.Closed(t), conntest.Listen(t, misbehave))
	p, at := planeOf(t, c, Config{})
	before := descriptors(t)
	var all sync.WaitGroup
	each := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range each {
				visit(at, i)
			}
		})
	}
	for i := range count {
		each <- i
	}
	close(each)
	all.Wait()
	conntest.Await(t, "all are closed", func() bool { return p.Counts().Open == 0 && c.InFlight() == 0 })
	if n := p.Counts().Accepted; n < int64(count)*9/10 {
		t.Errorf("%d of %d were accepted", n, count)
	}
	conntest.Await(t, "descriptors", func() bool { return descriptors(t) <= before+2*2*sparesMost+4 })
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// misbehave answers by the first byte: e echoes, r resets, c closes at once, h ends its
// side and reads on.
func misbehave(s *net.TCPConn) {
	defer s.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(s, first); err != nil {
		return
	}
	switch first[0] {
	case 'e':
		_, _ = io.Copy(s, s)
	case 'r':
		_ = s.SetLinger(0)
	case 'h':
		_, _ = s.Write(first)
		_ = s.CloseWrite()
		_, _ = io.Copy(io.Discard, s)
	}
}

// visit is a client of a kind that comes by turns.
func visit(at string, i int) {
	conn, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return
	}
	c := conn.(*net.TCPConn)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = c.Write([]byte{"erch"[i%4]})
	switch i / 4 % 4 {
	case 0:
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	case 1:
		_ = c.SetLinger(0)
	case 2:
		_, _ = c.Write(make([]byte, 1000))
		_, _ = c.Read(make([]byte, 10))
	}
}
