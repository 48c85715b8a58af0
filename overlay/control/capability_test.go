package control_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// timedPython sends a packet with a time, one with a priority as well that takes a capability, and one
// that is too long for the ring; then it says whether the clock is taken of what is not UDP.
const timedPython = `
import socket, struct, sys, time
SO_TXTIME, CLOCK_TAI = 61, 11
option = struct.pack("iI", CLOCK_TAI, 0)
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5) # which is not that of the next of its number
other.close()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, option)
s.connect((sys.argv[1], int(sys.argv[2])))
head = struct.pack(">4sHHQQ", b"SKRY", 0, 1, 0, 0)
def send(data, *more):
    at = struct.pack("Q", time.clock_gettime_ns(CLOCK_TAI) + 100_000_000)
    s.sendmsg([data], [(socket.SOL_SOCKET, SO_TXTIME, at), *more])
send(head)
send(head, (socket.SOL_SOCKET, socket.SO_PRIORITY, struct.pack("i", 7)))
send(head + bytes(2000 - len(head)))
for kind in (socket.SOCK_STREAM, 0), (socket.SOCK_RAW, socket.IPPROTO_UDP):
    try:
        socket.socket(socket.AF_INET, *kind).setsockopt(socket.SOL_SOCKET, SO_TXTIME, option)
        print("taken")
    except PermissionError:
        print("refused")
`

// The kernel refuses CLOCK_TAI to a program without CAP_NET_ADMIN. LibKTSN does not: its packets
// go by the daemon, and without one, or where they do not fit, by the kernel without a gate.
func TestWithoutTheCapability(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip(err)
	}
	l := newLAN(t)
	c, _ := l.daemon()
	conn := l.listen(far4)
	for _, with := range []struct {
		daemon, path string
	}{{"a daemon", filepath.Join(l.dir, "ktsn")}, {"no daemon", filepath.Join(l.dir, "nobody")}} {
		program := exec.Command(setpriv, "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", "--", python, "-c", timedPython, far4, strconv.Itoa(port))
		program.Env = append(l.talk(far4).Env, "KTSN_SOCKET="+with.path, "KTSN_FALLBACK=")
		out, err := program.CombinedOutput()
		if err != nil {
			t.Fatalf("with %s: %v: %s", with.daemon, err, out)
		}
		if got := len(hear(t, conn, allLeft)); got != 3 {
			t.Errorf("with %s %d packets of 3 arrived", with.daemon, got)
		}
		if said := strings.Fields(string(out)); len(said) != 2 || said[0] != "refused" || said[1] != "refused" {
			t.Errorf("with %s the clock is %v of what is not UDP", with.daemon, said)
		}
	}
	s, err := c.Status()
	must(t, err)
	if len(s.Classes) != 2 || s.Classes[0].Class != 0 || s.Classes[0].Sent != 1 || s.Classes[1].Class != 7 || s.Classes[1].Sent != 1 {
		t.Errorf("the daemon counts %+v, of 2 packets that fit", s.Classes)
	}
}
