package guest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// captured is a packet of a capture file.
type captured struct {
	// at is the name of its interface.
	at   string
	time time.Time
	data []byte
}

// record captures what passes between two ends while f works.
func record(t *testing.T, lab *host.Lab, ends [2]topology.Ref, f func()) (all []captured) {
	t.Helper()
	c, err := lab.Capture(ends[:], capture.Options{})
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var file bytes.Buffer
	done := make(chan error)
	go func() {
		_, err := c.Record(ctx, &file)
		done <- err
	}()
	f()
	cancel()
	must(t, <-done)
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	must(t, err)
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		described, err := r.Interface(info.InterfaceIndex)
		must(t, err)
		all = append(all, captured{described.Name, info.Timestamp, data})
	}
}

// wantOnLink wants every packet that is sent into a link to come out after its
// delay, in order.
func wantOnLink(t *testing.T, all []captured, link string, delay time.Duration) {
	t.Helper()
	var sent []captured
	received := 0
	for _, p := range all {
		switch {
		case p.at == link+" sent":
			sent = append(sent, p)
		case p.at != link+" received":
		case received == len(sent):
			t.Fatalf("%s: a packet comes out that has not gone in", link)
		default:
			if took := p.time.Sub(sent[received].time); took < delay || took > delay+slack {
				t.Errorf("%s: packet %d takes %s, want %s", link, received, took, delay)
			}
			// The router between two clusters writes Ethernet header, TTL and checksum.
			const unchanged = 14 + 12
			if !bytes.Equal(p.data[unchanged:], sent[received].data[unchanged:]) {
				t.Errorf("%s: packet %d changes on its way", link, received)
			}
			received++
		}
	}
	if received == 0 || received < len(sent) {
		t.Errorf("%s: %d packets in, %d out", link, len(sent), received)
	}
}

func captureLink(t *testing.T, lab *host.Lab) {
	conn := linked(t, lab)
	all := record(t, lab, [2]topology.Ref{"c1", "c2"}, func() {
		for range 5 {
			wantAnswer(t, conn)
		}
		time.Sleep(ms(50).Std()) // the last acknowledgement is on its way
	})
	wantOnLink(t, all, "c1>c2", ms(5).Std())
	wantOnLink(t, all, "c2>c1", ms(5).Std())
	f := inject(t, lab, host.CutLink(host.Link{From: "c2", To: "c1"}))
	all = record(t, lab, [2]topology.Ref{"c1", "c2"}, func() { wantSilence(t, conn, "over a link that is cut") })
	if len(all) == 0 {
		t.Error("of what is sent into a link that is cut nothing is captured")
	}
	for _, p := range all {
		if p.at != "c2>c1 sent" {
			t.Errorf("a packet at %s, while c2>c1 is cut", p.at)
		}
	}
	undo(t, lab, f)
}

func captureInside(t *testing.T, lab *host.Lab) {
	must(t, lab.SetLinks(t.Context(), bothWays("c1/head", serviceNode, impair.Impairment{Delay: ms(3)}), 1))
	all := record(t, lab, [2]topology.Ref{"c1/head", serviceNode}, func() {
		conn, err := lab.Dial(t.Context(), "c1/head", serviceIP+":"+echoPort)
		must(t, err)
		wantAnswer(t, conn)
		_ = conn.Close()
		time.Sleep(ms(50).Std()) // the last acknowledgement is on its way
	})
	wantOnLink(t, all, "c1/head>c1/worker", ms(3).Std())
	wantOnLink(t, all, "c1/worker>c1/head", ms(3).Std())
	for _, p := range all {
		if strings.HasPrefix(p.at, "c2") {
			t.Errorf("a packet at %s", p.at)
		}
	}
}
