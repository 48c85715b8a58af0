package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/lab/capture"
)

// world is a network namespace of the test's own, in which lo is up.
type world struct{ net *os.File }

func newWorld(t *testing.T) world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace is made")
	}
	var w world
	err := thread.InFreshNet(func() (err error) {
		if w.net, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		return netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.net.Close() })
	return w
}

func (w world) within(f func() error) error {
	return thread.InNet(int(w.net.Fd()), f)
}

// both are the two sides of lo.
func (w world) both() []capture.Point {
	return []capture.Point{
		{Name: "out", Within: w.within, Device: "lo", Outgoing: true},
		{Name: "in", Within: w.within, Device: "lo"},
	}
}

// send sends n numbered datagrams of a size to an address.
func (w world) send(t *testing.T, to string, n, size int) {
	t.Helper()
	err := w.within(func() error {
		// Without it ICMP would answer.
		listener, err := net.ListenPacket("udp", ":9")
		if err != nil {
			return err
		}
		defer listener.Close()
		conn, err := net.Dial("udp", net.JoinHostPort(to, "9"))
		if err != nil {
			return err
		}
		defer conn.Close()
		for i := range n {
			payload := binary.BigEndian.AppendUint32(nil, uint32(i))
			if _, err := conn.Write(append(payload, make([]byte, size-len(payload))...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, points []capture.Point, o capture.Options) *capture.Capture {
	t.Helper()
	c, err := capture.Open(points, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ended is a context for a capture that writes what there is by now.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

type packet struct {
	at string
	gopacket.CaptureInfo
	data []byte
}

func read(t *testing.T, file io.Reader) (all []packet) {
	t.Helper()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		described, err := r.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, packet{described.Name, info, data})
	}
}

const destinationAt, destination6At, payloadAt = 14 + 16, 14 + 24, 14 + 20 + 8

func TestPacketsOfSeveralPointsInOrderOfTime(t *testing.T) {
	w := newWorld(t)
	c := open(t, w.both(), capture.Options{Application: "test"})
	before := time.Now()
	const sent = 1000
	w.send(t, "127.0.0.1", sent, 100)
	after := time.Now()
	var file bytes.Buffer
	totals, err := c.Record(ended(t), &file)
	if err != nil {
		t.Fatal(err)
	}
	last := before
	next := map[string]uint32{}
	for i, p := range read(t, &file) {
		if p.Timestamp.Before(last) || p.Timestamp.After(after) {
			t.Fatalf("packet %d of %s does not stand between %s and %s", i, p.Timestamp, last, after)
		}
		last = p.Timestamp
		number := binary.BigEndian.Uint32(p.data[payloadAt:])
		if number != next[p.at] {
			t.Fatalf("at %s %d follows after %d", p.at, number, next[p.at]-1)
		}
		next[p.at]++
		if next["in"] > next["out"] {
			t.Fatalf("%d comes in before it goes out", number)
		}
	}
	if next["out"] != sent || next["in"] != sent {
		t.Errorf("the file has %v packets, sent were %d", next, sent)
	}
	if len(totals) != 2 || totals[0].Name != "out" || totals[0].Packets != sent || totals[0].Dropped != 0 {
		t.Errorf("counted %+v", totals)
	}
}

func TestPacketsBetweenTwoNetworks(t *testing.T) {
	w := newWorld(t)
	point := w.both()[0]
	point.Source, point.Destination = netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.2.0.0/16")
	backward := point
	backward.Name, backward.Source, backward.Destination = "back", point.Destination, point.Source
	c := open(t, []capture.Point{point, backward}, capture.Options{})
	for _, to := range []string{"127.1.255.255", "127.2.0.1", "127.2.255.254", "127.3.0.1"} {
		w.send(t, to, 1, 100)
	}
	if got := destinations(t, c); got != "out 127.2.0.1, out 127.2.255.254" {
		t.Errorf("captured %s", got)
	}
}

// Where a point has networks of both families, packets of either count that are between
// its own; where it has none of IPv6, no packet of that does.
func TestPacketsOfTwoFamilies(t *testing.T) {
	w := newWorld(t)
	addresses := []string{"fd00:0:0:1::1", "fd00:0:0:2::1", "fd00:0:0:2::2"}
	err := w.within(func() error {
		for _, a := range addresses {
			ip := &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(128, 128)}
			err := netlink.AddrAdd(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1}}, &netlink.Addr{IPNet: ip, Flags: unix.IFA_F_NODAD})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Skipf("needs IPv6: %v", err)
	}
	single := w.both()[0]
	single.Source, single.Destination = netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.2.0.0/16")
	dual := single
	dual.Name, dual.Source6, dual.Destination6 = "dual", netip.MustParsePrefix("fd00::/48"), netip.MustParsePrefix("fd00:0:0:2::/63")
	narrow := dual
	narrow.Name, narrow.Destination6 = "narrow", netip.MustParsePrefix(addresses[2]+"/128")
	c := open(t, []capture.Point{single, dual, narrow}, capture.Options{})
	for _, to := range append(addresses, "127.1.0.1", "127.2.0.1") {
		w.send(t, to, 1, 100)
	}
	got := destinations(t, c)
	if want := "dual fd00:0:0:2::1, dual fd00:0:0:2::2, narrow fd00:0:0:2::2, out 127.2.0.1, dual 127.2.0.1, narrow 127.2.0.1"; got != want {
		t.Errorf("captured %s, want %s", got, want)
	}
}

// needTcpdump skips where filters cannot be compiled.
func needTcpdump(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("needs tcpdump, which compiles filters: apt-get install tcpdump")
	}
}

// destinations are where the captured packets go, and at which point they are.
func destinations(t *testing.T, c *capture.Capture) string {
	t.Helper()
	var file bytes.Buffer
	if _, err := c.Record(ended(t), &file); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range read(t, &file) {
		to := net.IP(p.data[destinationAt : destinationAt+4])
		if binary.BigEndian.Uint16(p.data[12:]) == unix.ETH_P_IPV6 {
			to = net.IP(p.data[destination6At : destination6At+16])
		}
		found = append(found, fmt.Sprint(p.at, " ", to))
	}
	return strings.Join(found, ", ")
}

// A filter is of all points, beside what each point is about.
func TestFilter(t *testing.T) {
	needTcpdump(t)
	w := newWorld(t)
	out, in := w.both()[0], w.both()[1]
	narrow := out
	narrow.Name = "narrow"
	narrow.Source, narrow.Destination = netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.2.0.0/16")
	const long = 40
	hosts := "dst host 127.2.0.2"
	for i := range long { // a jump reaches over 255 instructions at most
		hosts += fmt.Sprintf(" or host 10.0.0.%d or (src port %d and dst port 1)", i, i+1)
	}
	for _, c := range []struct{ filter, want string }{
		{"", "out 127.1.0.1, in 127.1.0.1, out 127.2.0.2, narrow 127.2.0.2, in 127.2.0.2"},
		{"dst net 127.1", "out 127.1.0.1, in 127.1.0.1"},
		{"udp port 9 and not dst net 127.1", "out 127.2.0.2, narrow 127.2.0.2, in 127.2.0.2"},
		{hosts, "out 127.2.0.2, narrow 127.2.0.2, in 127.2.0.2"},
		{"tcp", ""},
		{"udp[8:4] = 0 and len < 100", ""},
		{"udp[8:4] = 0 and less 142", "out 127.1.0.1, in 127.1.0.1, out 127.2.0.2, narrow 127.2.0.2, in 127.2.0.2"},
	} {
		listener := open(t, []capture.Point{out, narrow, in}, capture.Options{Filter: c.filter})
		for _, to := range []string{"127.1.0.1", "127.2.0.2"} {
			w.send(t, to, 1, 100)
		}
		if got := destinations(t, listener); got != c.want {
			t.Errorf("%.60q: captured %s, want %s", c.filter, got, c.want)
		}
	}
}

// Packets that nobody wants take no room: those that are wanted are not dropped
// for them.
func TestFilterCopiesOnlyWhatIsWanted(t *testing.T) {
	needTcpdump(t)
	w := newWorld(t)
	c := open(t, w.both()[:1], capture.Options{Filter: "dst host 127.2.0.2"})
	const unwanted = 3000 // far more than is kept for a point, see TestCountsWhatIsDropped
	w.send(t, "127.0.0.1", unwanted, 60_000)
	w.send(t, "127.2.0.2", 1, 100)
	totals, err := c.Record(ended(t), io.Discard)
	if err != nil || totals[0].Packets != 1 || totals[0].Dropped != 0 {
		t.Errorf("counted %+v, %v, want the one that is wanted", totals, err)
	}
}

func TestBadFilters(t *testing.T) {
	needTcpdump(t)
	w := newWorld(t)
	for expression, want := range map[string]string{
		"tcp prt 80":           "syntax error",
		"host":                 "syntax error",
		"host nobody.invalid":  "nobody.invalid",
		"tcp and udp":          "expression rejects all packets",
		"-w /tmp/x":            "syntax error", // no option of tcpdump's
		"port 99999":           "illegal port number",
		"tcp\nand \"quotes\"":  "syntax error",
		"udp\x00":              "invalid argument",
		strings.Repeat("(", 5): "syntax error",
	} {
		_, err := capture.Open(w.both(), capture.Options{Filter: expression})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", expression, err, want)
		}
		if wrong, ok := errors.AsType[*capture.FilterError](err); ok && wrong.Expression != expression {
			t.Errorf("%q: the error is of %q", expression, wrong.Expression)
		}
	}
}

func TestFilterNeedsTcpdump(t *testing.T) {
	w := newWorld(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := capture.Open(w.both(), capture.Options{Filter: "tcp"}); !errors.Is(err, capture.ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
	if c, err := capture.Open(w.both(), capture.Options{}); err != nil || c.Close() != nil {
		t.Errorf("without a filter: %v", err)
	}
}

func TestCaptureNowhere(t *testing.T) {
	if _, err := capture.Open(nil, capture.Options{}); err == nil {
		t.Error("a capture without a point begins")
	}
}

func TestKeepsTheBeginningOfPackets(t *testing.T) {
	w := newWorld(t)
	const keep, size = 60, 40_000
	c := open(t, w.both()[:1], capture.Options{Keep: keep})
	w.send(t, "127.0.0.1", 1, size)
	var file bytes.Buffer
	if _, err := c.Record(ended(t), &file); err != nil {
		t.Fatal(err)
	}
	p := read(t, &file)[0]
	if p.CaptureLength != keep || p.Length != payloadAt+size {
		t.Errorf("of %d bytes, which the file calls %d, %d are kept", payloadAt+size, p.Length, p.CaptureLength)
	}
}

// What comes while nobody reads is dropped beyond a bound, and counted.
func TestCountsWhatIsDropped(t *testing.T) {
	w := newWorld(t)
	c := open(t, w.both()[:1], capture.Options{Keep: 64})
	const sent = 3000
	w.send(t, "127.0.0.1", sent, 60_000)
	totals, err := c.Record(ended(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := totals[0]
	if got.Packets == 0 || got.Dropped == 0 || got.Packets+got.Dropped != sent {
		t.Errorf("of %d packets %d were written and %d dropped", sent, got.Packets, got.Dropped)
	}
}

// An interface that is down for a while is no end of the capture.
func TestInterfaceGoesDownAndUp(t *testing.T) {
	w := newWorld(t)
	c := open(t, w.both()[:1], capture.Options{})
	w.send(t, "127.0.0.1", 1, 100)
	err := w.within(func() error {
		lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1}}
		return errors.Join(netlink.LinkSetDown(lo), netlink.LinkSetUp(lo))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, "127.0.0.1", 1, 100)
	var file bytes.Buffer
	if _, err := c.Record(ended(t), &file); err != nil {
		t.Fatal(err)
	}
	if found := len(read(t, &file)); found != 2 {
		t.Errorf("%d packets, want the one before and the one after", found)
	}
}

func TestFullDiskIsOneError(t *testing.T) {
	w := newWorld(t)
	c := open(t, w.both(), capture.Options{})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if _, err := c.Record(t.Context(), full); !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

var errDead = errors.New("what was captured has ended")

func TestEndsWithWhatIsCaptured(t *testing.T) {
	w := newWorld(t)
	c := open(t, w.both(), capture.Options{Alive: func() error { return errDead }})
	w.send(t, "127.0.0.1", 1, 100)
	var file bytes.Buffer
	totals, err := c.Record(t.Context(), &file)
	if !errors.Is(err, errDead) || len(totals) != 2 || totals[0].Packets == 0 {
		t.Errorf("got %+v, %v", totals, err)
	}
	if len(read(t, &file)) == 0 {
		t.Error("the file has no packet")
	}
}

func TestNoSuchInterface(t *testing.T) {
	w := newWorld(t)
	points := w.both()
	points[1].Device = "eth7"
	_, err := capture.Open(points, capture.Options{})
	if err == nil || !strings.Contains(err.Error(), "capture at in: ") {
		t.Errorf("got %v", err)
	}
}
