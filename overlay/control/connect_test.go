package control_test

import (
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/overlay/control"
)

// connectingPython is bound to a port of all addresses, and sends a packet before it is connected and one after.
const connectingPython = `
import socket, struct, sys, time
SO_TXTIME, CLOCK_TAI = 61, 11
to = (sys.argv[1], int(sys.argv[2]))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 0))
s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_TAI, 0))
def send(number, *address):
    at = struct.pack("Q", time.clock_gettime_ns(CLOCK_TAI) + 500_000_000)
    s.sendmsg([struct.pack(">4sHHQQ", b"SKRY", 0, 1, number, 0)], [(socket.SOL_SOCKET, SO_TXTIME, at)], 0, *address)
send(0, to)
s.connect(to)
send(1)
`

// A socket that is connected sends from the address that the kernel has given it by that.
func TestConnectChoosesTheAddress(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	const second = "10.9.0.3"
	l := newLAN(t)
	addressed(t, new(netlink.Handle), "data", second)
	data, err := netlink.LinkByName("data")
	must(t, err)
	far := &net.IPNet{IP: net.ParseIP(far4).To4(), Mask: net.CIDRMask(32, 32)}
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: data.Attrs().Index, Dst: far, Src: net.ParseIP(second), Scope: netlink.SCOPE_LINK}))
	c, _ := l.daemon()
	must(t, c.Detach("test"))
	must(t, c.Attach(control.Attachment{
		Name: "two", Path: filepath.Join(l.dir, "ktsn"), Addresses: []netip.Addr{netip.MustParseAddr(near4), netip.MustParseAddr(second)},
	}))
	conn := l.listen(far4)
	program := exec.Command(python, "-c", connectingPython, far4, strconv.Itoa(port))
	program.Env = l.talk(far4).Env
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := hear(t, conn, allLeft)
	if len(got) != 2 || got[1].sequence != 1 || got[1].from.Addr().String() != second || got[1].from.Port() != got[0].from.Port() {
		t.Errorf("they arrive as %+v, want the second from %s", got, second)
	}
	if k := only(t, c); k.Sent != 2 {
		t.Errorf("the daemon counts %+v", k)
	}
}
