package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// captured is a packet of a capture file, with the name of its interface.
type captured struct {
	at string
	gopacket.CaptureInfo
	data []byte
}

// read reads a capture file to its end, and the names of its interfaces.
func read(t *testing.T, file io.Reader) (packets []captured, interfaces []string) {
	t.Helper()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		described, err := r.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, captured{described.Name, info, data})
	}
	for i := range r.NInterfaces() {
		described, err := r.Interface(i)
		if err != nil {
			t.Fatal(err)
		}
		interfaces = append(interfaces, described.Name)
	}
	return packets, interfaces
}

// record captures while f works.
func record(t *testing.T, lab *host.Lab, ends []topology.Ref, o capture.Options, f func()) (*bytes.Buffer, []capture.Total) {
	t.Helper()
	c, err := lab.Capture(ends, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var file bytes.Buffer
	var totals []capture.Total
	done := make(chan error)
	go func() {
		var err error
		totals, err = c.Record(ctx, &file)
		done <- err
	}()
	f()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return &file, totals
}

// echo tells a ping's requests and answers by their number; 0 is something else.
func echo(p captured) (number int, request bool) {
	packet := gopacket.NewPacket(p.data, layers.LinkTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	icmp, ok := packet.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
	if !ok {
		return 0, false
	}
	return int(icmp.Seq), icmp.TypeCode.Type() == layers.ICMPv4TypeEchoRequest
}

// A ping over a link of 5 ms is four packets in the file, and the times between
// them are the link's delays.
func TestCaptureOfALink(t *testing.T) {
	lab := up(t, "capture", square())
	const asked = 5 * time.Millisecond
	set(t, lab, both("c1", "c2", delay(5))...)
	const pings = 10
	file, totals := record(t, lab, []topology.Ref{"c1", "c2"}, capture.Options{}, func() {
		mustSh(t, lab, "c1/worker", "ping -c 10 -i 0.02 -W 2 c2-worker")
		mustSh(t, lab, "c1/worker", "ping -c 1 -W 2 c1-head") // beside the link
	})
	packets, interfaces := read(t, file)
	if got := strings.Join(interfaces, ", "); got != "c1>c2 sent, c1>c2 received, c2>c1 sent, c2>c1 received" {
		t.Errorf("interfaces %s", got)
	}
	seen := map[string]map[int]time.Time{}
	var last time.Time
	for _, p := range packets {
		if p.Timestamp.Before(last) {
			t.Errorf("a packet of %s stands behind one of %s", p.Timestamp, last)
		}
		last = p.Timestamp
		number, request := echo(p)
		if request != strings.HasPrefix(p.at, "c1>c2") {
			t.Errorf("ping %d, request %t, at %s", number, request, p.at)
		}
		if seen[p.at] == nil {
			seen[p.at] = map[int]time.Time{}
		}
		seen[p.at][number] = p.Timestamp
	}
	for _, name := range interfaces {
		if len(seen[name]) != pings {
			t.Errorf("at %s are %d pings, want %d", name, len(seen[name]), pings)
		}
	}
	for _, direction := range []string{"c1>c2", "c2>c1"} {
		least := time.Hour
		for number, sent := range seen[direction+" sent"] {
			least = min(least, seen[direction+" received"][number].Sub(sent))
		}
		if least < asked || least > asked+asked/5 {
			t.Errorf("%s takes %s by the file, want %s", direction, least, asked)
		}
	}
	for _, total := range totals {
		if total.Packets != pings || total.Dropped != 0 {
			t.Errorf("counted %+v", total)
		}
	}
}

// Nodes of one cluster have a bridge between them, and no router.
func TestCaptureInsideACluster(t *testing.T) {
	lab := up(t, "capture-in", square())
	file, _ := record(t, lab, []topology.Ref{"c1/head", "c1/worker"}, capture.Options{}, func() {
		mustSh(t, lab, "c1/head", "ping -c 3 -i 0.02 -W 2 c1-worker")
		mustSh(t, lab, "c1/head", "ping -c 1 -W 2 c2-worker")
	})
	packets, _ := read(t, file)
	found := map[string]int{}
	for _, p := range packets {
		if number, _ := echo(p); number > 0 {
			found[p.at]++
		}
	}
	for _, at := range []string{"c1/head>c1/worker sent", "c1/head>c1/worker received", "c1/worker>c1/head sent", "c1/worker>c1/head received"} {
		if found[at] != 3 {
			t.Errorf("at %s are %d pings, want 3", at, found[at])
		}
	}
}

// Of a node all frames are there, ARP as well, cut where that was asked for.
func TestCaptureOfANode(t *testing.T) {
	lab := up(t, "capture-node", square())
	const keep, length = 64, 14 + 20 + 8 + 1000
	file, _ := record(t, lab, []topology.Ref{"c1/worker"}, capture.Options{Keep: keep}, func() {
		mustSh(t, lab, "c1/worker", "ping -c 3 -i 0.02 -W 2 -s 1000 c2-worker")
		mustSh(t, lab, "c2/head", "ping -c 1 -W 2 c1-head") // of other nodes
	})
	packets, interfaces := read(t, file)
	if got := strings.Join(interfaces, ", "); got != "c1/worker sent, c1/worker received" {
		t.Errorf("interfaces %s", got)
	}
	requests, answers, others := 0, 0, 0
	for _, p := range packets {
		number, request := echo(p)
		switch {
		case number == 0:
			others++
			continue
		case request && p.at == "c1/worker sent":
			requests++
		case !request && p.at == "c1/worker received":
			answers++
		}
		if p.CaptureLength != keep || p.Length != length {
			t.Errorf("of a frame of %d bytes, which the file calls %d, %d are kept", length, p.Length, p.CaptureLength)
		}
	}
	if requests != 3 || answers != 3 || others == 0 {
		t.Errorf("%d requests, %d answers, %d others such as ARP", requests, answers, others)
	}
}

func TestCaptureEndsWithItsLab(t *testing.T) {
	lab := up(t, "capture-down", square())
	c, err := lab.Capture([]topology.Ref{"c1/worker"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	mustSh(t, lab, "c1/worker", "ping -c 1 -W 2 c2-worker")
	if err := lab.Down(); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	totals, err := c.Record(t.Context(), &file)
	if !errors.Is(err, host.ErrLabEnded) || len(totals) != 2 || totals[0].Packets == 0 {
		t.Errorf("got %+v, %v", totals, err)
	}
	if packets, _ := read(t, &file); uint64(len(packets)) != totals[0].Packets+totals[1].Packets {
		t.Errorf("the file has %d packets, counted were %+v", len(packets), totals)
	}
}

func TestCaptureOfNothing(t *testing.T) {
	lab := up(t, "capture-nothing", square())
	for _, c := range []struct {
		ends []topology.Ref
		want string
	}{
		{nil, "name a node or the two ends of a link"},
		{[]topology.Ref{"c1/nobody"}, `no node "c1/nobody"`},
		{[]topology.Ref{"c1", "c3"}, `no cluster or node "c3"`},
		{[]topology.Ref{"c1", "c2/head"}, "one of c1 and c2/head is a cluster, the other a node"},
	} {
		if _, err := lab.Capture(c.ends, capture.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.ends, err, c.want)
		}
	}
}
