package userspace

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

// prefixed is a server of UDP that answers with what it gets, after a prefix.
func prefixed(t *testing.T, prefix string) string {
	t.Helper()
	return conntest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return append([]byte(prefix), said...) })
}

func openFront(t *testing.T, p *Plane) (target netip.AddrPort, at netip.AddrPort) {
	t.Helper()
	target = netip.MustParseAddrPort("10.96.0.10:53")
	at, err := p.OpenFront(Front{Target: target, At: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	return target, at
}

func ask(t *testing.T, c net.Conn, what string) string {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; {
		_, _ = c.Write([]byte(what))
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		b := make([]byte, 1<<16)
		if n, err := c.Read(b); err == nil {
			return string(b[:n])
		}
	}
	t.Fatalf("no answer to %.20q", what)
	return ""
}

func dialUDP(t *testing.T, at netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A client of UDP has one endpoint for all that it says; another client may have another.
func TestDatagrams(t *testing.T) {
	c := planetest.New(prefixed(t, "a"), prefixed(t, "b"))
	p, _ := planeOf(t, c, Config{})
	target, at := openFront(t, p)
	one, two := dialUDP(t, at), dialUDP(t, at)
	for range 3 {
		if got := ask(t, one, "x"); got != "ax" {
			t.Errorf("the first client got %q", got)
		}
		if got := ask(t, two, "y"); got != "by" {
			t.Errorf("the second client got %q", got)
		}
	}
	large := string(make([]byte, 60_000))
	if got := ask(t, one, large); got != "a"+large {
		t.Errorf("of 60,000 bytes %d came back", len(got)-1)
	}
	if n := c.InFlight(); n != 0 || c.Count(dataplane.Served) != 2 || c.Answers() != 2 {
		t.Errorf("%d in flight after answers", n)
	}
	if c.Calls()[0].Target != target {
		t.Errorf("the target was %s", c.Calls()[0].Target)
	}
}

// refusing is an address where nobody takes datagrams.
func refusing(t *testing.T) string {
	t.Helper()
	gone, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9)})
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	return gone.LocalAddr().String()
}

// A client whose endpoint refuses has another one then.
func TestDatagramsRefused(t *testing.T) {
	c := planetest.New()
	c.ServeFirst(refusing(t), prefixed(t, "b"))
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	if got := ask(t, dialUDP(t, at), "x"); got != "bx" {
		t.Errorf("got %q", got)
	}
	conntest.Await(t, "one has failed", func() bool { return c.Count(dataplane.Failed) == 1 })
}

// A datagram that the kernel does not send, since it has to tell that the one before was refused,
// is not lost.
func TestDatagramAfterRefusal(t *testing.T) {
	c := planetest.New()
	c.ServeFirst(refusing(t), prefixed(t, "b"))
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	client := dialUDP(t, at)
	from := client.LocalAddr().(*net.UDPAddr).AddrPort()
	p.loops[0].tell(func(l *loop) {
		f := l.frontAt(at)
		l.pass(f, from, []byte("x"))
		refused := []unix.PollFd{{Fd: int32(f.sessions[from].fd)}} //nolint:gosec // a descriptor
		for errno := error(unix.EINTR); errno == unix.EINTR; {     //nolint:errorlint // poll's own
			_, errno = unix.Poll(refused, int(patience.Milliseconds()))
		}
		l.pass(f, from, []byte("y"))
	})
	_ = client.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 100)
	if n, err := client.Read(b); string(b[:n]) != "by" {
		t.Errorf("the second datagram got %q, %v", b[:n], err)
	}
}

// That a datagram was too long for the way ends no session, since it is no word of the
// endpoint's.
func TestDatagramsTooLong(t *testing.T) {
	from := make(chan net.Addr, 100)
	endpoint := conntest.Datagrams(t, func(said []byte, who net.Addr) []byte { from <- who; return said })
	own := dialUDP(t, netip.MustParseAddrPort(endpoint))
	tooLong(t, own.LocalAddr(), endpoint)
	_ = own.SetReadDeadline(time.Now().Add(patience))
	if _, err := own.Read(make([]byte, 1)); !errors.Is(err, unix.EMSGSIZE) {
		t.Fatalf("the kernel says %v of a datagram that was too long", err)
	}
	c := planetest.New(endpoint)
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	client := dialUDP(t, at)
	ask(t, client, "x")
	session := (<-from).String()
	for range 3 {
		tooLong(t, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(session)), endpoint)
		ask(t, client, "x")
	}
	for len(from) > 0 {
		if now := (<-from).String(); now != session {
			t.Errorf("the session of %s goes on from %s", session, now)
		}
	}
	if n := c.Count(dataplane.Failed); n != 0 {
		t.Errorf("%d endpoints failed", n)
	}
}

// tooLong has a router say to who sends that a datagram needed to be cut (RFC 1191).
func tooLong(t *testing.T, sender net.Addr, receiver string) {
	t.Helper()
	router, err := net.ListenPacket("ip4:icmp", "127.0.0.1")
	if errors.Is(err, unix.EPERM) {
		t.Skip("not root, whom a raw socket takes")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = router.Close() }()
	from, to := netip.MustParseAddrPort(sender.String()), netip.MustParseAddrPort(receiver)
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
	udp := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	said := gopacket.NewSerializeBuffer()
	err = errors.Join(udp.SetNetworkLayerForChecksum(ip),
		gopacket.SerializeLayers(said, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, &layers.ICMPv4{
			TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeDestinationUnreachable, layers.ICMPv4CodeFragmentationNeeded),
			Seq:      math.MaxUint16, // the MTU of the next hop (RFC 1191, section 4), which the kernel keeps: what later tests send fits
		}, ip, udp))
	if err == nil {
		_, err = router.WriteTo(said.Bytes(), &net.IPAddr{IP: from.Addr().AsSlice()})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A client that says on, and has no answer, has another endpoint when its own is gone; that
// it had none says nothing of an endpoint.
func TestDatagramsMoved(t *testing.T) {
	said := make(chan string, 1000)
	mute := func(name string) string {
		return conntest.Datagrams(t, func([]byte, net.Addr) []byte {
			said <- name
			return nil
		})
	}
	one, other := mute("one"), mute("other")
	c := planetest.New(one)
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	client := dialUDP(t, at)
	hears := func(name string) func() bool {
		return func() bool {
			_, _ = client.Write([]byte("x"))
			select {
			case who := <-said:
				return who == name
			default:
				return false
			}
		}
	}
	conntest.Await(t, "one hears it", hears("one"))
	c.Serve(other)
	conntest.Await(t, "the other does", hears("other"))
	if n := c.Count(dataplane.Gone); n != 1 || c.Count(dataplane.Failed) != 0 {
		t.Errorf("%d came to nothing, %d have failed", n, c.Count(dataplane.Failed))
	}
}

// A client that says nothing any more is forgotten, and where nobody serves is dropped.
func TestDatagramsForgotten(t *testing.T) {
	c := planetest.New(prefixed(t, "a"))
	p, _ := planeOf(t, c, Config{SessionIdle: time.Millisecond})
	_, at := openFront(t, p)
	client := dialUDP(t, at)
	ask(t, client, "x")
	before := descriptors(t)
	conntest.Await(t, "its descriptor is closed", func() bool { return descriptors(t) < before })
	if got := ask(t, client, "x"); got != "ax" {
		t.Errorf("got %q after it", got)
	}
	c.Serve()
	other := dialUDP(t, at)
	_, _ = other.Write([]byte("x"))
	conntest.Await(t, "dropped", func() bool { return p.Counts().Dropped == 1 })
}

// Of more clients than may be remembered who has been silent for longest is forgotten, and has
// an endpoint anew when it speaks.
func TestDatagramsOfMany(t *testing.T) {
	c := planetest.New(prefixed(t, "a"), prefixed(t, "b"), prefixed(t, "c"), prefixed(t, "d"))
	p, _ := planeOf(t, c, Config{Sessions: 2})
	_, at := openFront(t, p)
	one, two, three := dialUDP(t, at), dialUDP(t, at), dialUDP(t, at)
	for _, turn := range []struct {
		client net.Conn
		want   string
	}{{one, "ax"}, {two, "bx"}, {one, "ax"}, {three, "cx"}, {one, "ax"}, {two, "dx"}} {
		if got := ask(t, turn.client, "x"); got != turn.want {
			t.Errorf("%q, not %q", got, turn.want)
		}
	}
	if n := p.Counts(); n.Evicted != 2 || n.Dropped != 0 {
		t.Errorf("%+v", n)
	}
}

// So it is where there are no descriptors for more.
func TestDatagramsWithoutDescriptors(t *testing.T) {
	c := planetest.New(prefixed(t, "a"))
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	first, others := dialUDP(t, at), make([]net.Conn, 8)
	for i := range others {
		others[i] = dialUDP(t, at)
	}
	ask(t, first, "x")
	_, giveBack := useUp(t)
	defer giveBack()
	for i := 0; i < len(others) && p.Counts().Evicted == 0; i++ { // what tests before this one still close is taken first
		if got := ask(t, others[i], "y"); got != "ay" {
			t.Errorf("got %q", got)
		}
	}
	if n := p.Counts(); n.Evicted != 1 || c.Count(dataplane.Failed) != 0 {
		t.Errorf("%+v, %d have failed", n, c.Count(dataplane.Failed))
	}
}

// A front that is closed says nothing of who has not answered there.
func TestCloseFront(t *testing.T) {
	c := planetest.New(conntest.Datagrams(t, func([]byte, net.Addr) []byte { return nil }))
	p, _ := planeOf(t, c, Config{})
	_, at := openFront(t, p)
	client := dialUDP(t, at)
	_, _ = client.Write([]byte("x"))
	conntest.Await(t, "it is carried", func() bool { return c.InFlight() == 1 })
	p.CloseFront(at)
	conntest.Await(t, "it is over", func() bool { return c.Count(dataplane.Gone) == 1 })
	conntest.Await(t, "nobody is there", func() bool {
		_, err := client.Write([]byte("x"))
		return err != nil
	})
}
