package guest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// underlayPrograms are what the steps of systems/wireguard call.
var underlayPrograms = []string{"sh", "ip", "wg", "sleep", "rm", "cat", "mkdir"}

// wireGuard runs systems/wireguard on a kernel that has the device. What the
// plug-in falls back to is not in the guest.
func wireGuard(t *testing.T, lab *host.Lab) {
	s, err := system.Load(systems.FS, "wireguard+direct")
	must(t, err)
	must(t, s.Build(t.Context(), func(_ context.Context, program string) (string, error) {
		return filepath.Join("/nowhere", program), nil
	}))
	for _, lack := range s.Missing() {
		t.Skip(lack)
	}
	port, err := strconv.Atoi(echoPort)
	must(t, err)
	v, err := system.ValuesFor(&lab.Topology, t.TempDir(), port)
	must(t, err)
	must(t, lab.SetLinks(t.Context(), bothWays("c1", "c2", impair.Impairment{Delay: ms(5)}), 1))
	running, err := s.Start(t.Context(), stackLab{lab}, v)
	must(t, err)
	defer func() {
		if _, err := running.Stop(); err != nil {
			t.Error(err)
		}
		wantDevices(t, lab, "")
	}()
	must(t, running.Connect(t.Context()))
	wantDevices(t, lab, "wireguard")
	wantPrograms(t, lab, "init", "sleep")
	address, err := running.Address()
	must(t, err)

	const text = "a request that nobody on the way can read"
	all := record(t, lab, [2]topology.Ref{"c1", "c2"}, func() {
		conn, err := lab.Dial(t.Context(), clientNode, address)
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = conn.Write([]byte(text))
		must(t, err)
		back := make([]byte, len(text))
		if _, err := io.ReadFull(conn, back); err != nil || string(back) != text {
			t.Errorf("over WireGuard %q comes back, %v", back, err)
		}
		_ = conn.Close()
		time.Sleep(ms(50).Std()) // what acknowledges is on its way
	})
	data := map[string]int{}
	for _, p := range all {
		if kind := wireGuardMessage(p.data); kind == transportData {
			data[p.at]++
		} else if kind == 0 {
			t.Errorf("at %s is a packet that is not WireGuard's: % x", p.at, p.data)
		}
		if bytes.Contains(p.data, []byte("nobody")) {
			t.Errorf("at %s the request can be read", p.at)
		}
	}
	// A dial, a request and an answer, with their acknowledgements.
	for _, at := range []string{"c1>c2 sent", "c1>c2 received", "c2>c1 sent", "c2>c1 received"} {
		if data[at] < 3 {
			t.Errorf("at %s are %d packets of data", at, data[at])
		}
	}
}

// stackLab is the lab as a stack sees it.
type stackLab struct{ *host.Lab }

// Start implements system.Runner.
func (l stackLab) Start(c host.Command) (system.Daemon, error) { return l.Lab.Start(c) }

// Deploy implements system.Runner: there are no clusters.
func (stackLab) Deploy(context.Context, system.Deployment) (system.Daemon, error) {
	return nil, errors.ErrUnsupported
}

func (stackLab) Install(context.Context, system.Installation) (system.Daemon, error) {
	return nil, errors.ErrUnsupported
}

// wantDevices wants the device of every node to be of a kind, "" for none there.
func wantDevices(t *testing.T, lab *host.Lab, kind string) {
	t.Helper()
	for node := range lab.Nodes {
		err := lab.Within(node, func() error {
			links, err := netlink.LinkList()
			i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == "wireguard" })
			got := ""
			if i >= 0 {
				got = links[i].Type()
			}
			if got != kind {
				t.Errorf("the device of %s is of the kind %q, want %q", node, got, kind)
			}
			return err
		})
		must(t, err)
	}
}

// wantPrograms wants no other programs in the nodes.
func wantPrograms(t *testing.T, lab *host.Lab, names ...string) {
	t.Helper()
	running, err := lab.Running()
	must(t, err)
	var found []string
	for _, r := range running {
		found = append(found, r.Programs...)
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, names) {
		t.Errorf("in the nodes run %s, want %s", strings.Join(found, ", "), strings.Join(names, ", "))
	}
}

const (
	wireGuardPort = 51820
	// Messages of WireGuard begin with their type, 1 to 4, and three zeros.
	transportData = 4
)

// wireGuardMessage is the type of a frame's message; 0 where it is none of
// WireGuard's, over UDP from its port to its port.
func wireGuardMessage(frame []byte) int {
	packet := gopacket.NewPacket(frame, layers.LinkTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	udp, ok := packet.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if !ok || udp.SrcPort != wireGuardPort || udp.DstPort != wireGuardPort || len(udp.Payload) < 4 {
		return 0
	}
	kind := int(udp.Payload[0])
	if kind > transportData || !bytes.Equal(udp.Payload[1:4], []byte{0, 0, 0}) {
		return 0
	}
	return kind
}
