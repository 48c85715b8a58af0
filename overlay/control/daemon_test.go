package control_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/overlay/control"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

const (
	near4, far4 = "10.9.0.1", "10.9.0.2"
	near6, far6 = "fd00:9::1", "fd00:9::2"
	port        = 7000

	// ahead is how long before their time programs hand packets over, in ns: longer than a
	// busy machine holds them up; allLeft is after what silence none is under way any more.
	ahead   = "500000000"
	allLeft = 1500 * time.Millisecond
)

// lan is the test's namespace with the end of a cable, and another one with the other.
type lan struct {
	t   *testing.T
	far netns.NsHandle
	mac net.HardwareAddr // of the far end
	dir string
}

func newLAN(t *testing.T) *lan {
	t.Helper()
	netnstest.Node(t, []string{near4 + "/24", near6 + "/64"}, nil)
	for _, program := range []string{"ktsnd", "ktsn-talker", "libktsn.so"} {
		if _, err := os.Stat(built(t, program)); err != nil {
			t.Skipf("%v: overlay/dataplane/build.sh builds it, with meson", err)
		}
	}
	l := &lan{t: t, dir: t.TempDir()}
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	must(t, holder.Start())
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	away, err := netlink.LinkByName("away")
	must(t, err)
	must(t, netlink.LinkSetNsPid(away, holder.Process.Pid))
	l.far, err = netns.GetFromPid(holder.Process.Pid)
	must(t, err)
	h, err := netlink.NewHandleAt(l.far)
	must(t, err)
	defer h.Close()
	away, err = h.LinkByName("away")
	must(t, err)
	must(t, h.LinkSetUp(away))
	for _, text := range []string{far4 + "/24", far6 + "/64"} {
		a, err := netlink.ParseAddr(text)
		must(t, err)
		a.Flags = unix.IFA_F_NODAD
		must(t, h.AddrAdd(away, a))
	}
	l.mac = away.Attrs().HardwareAddr
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// built is where make build puts a program.
func built(t *testing.T, program string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", program))
	must(t, err)
	return path
}

// there calls in the far namespace.
func (l *lan) there(call func() error) {
	l.t.Helper()
	must(l.t, thread.InNet(int(l.far), call))
}

// listen opens a socket at the far end.
func (l *lan) listen(address string) *net.UDPConn {
	l.t.Helper()
	var conn *net.UDPConn
	l.there(func() error {
		packets, err := net.ListenPacket("udp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err == nil {
			conn = packets.(*net.UDPConn)
		}
		return err
	})
	l.t.Cleanup(func() { _ = conn.Close() })
	must(l.t, conn.SetReadBuffer(4<<20))
	raw, err := conn.SyscallConn()
	must(l.t, err)
	must(l.t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }))
	must(l.t, err)
	return conn
}

// daemon starts ktsnd, attaches the test's namespace and sets routes to the far end.
func (l *lan) daemon(options ...string) (*control.Client, *exec.Cmd) {
	l.t.Helper()
	cmd := exec.Command(built(l.t, "ktsnd"), append([]string{"--port", "af_packet:data", "--control", filepath.Join(l.dir, "control"), "--late-ns", "1000000000"}, options...)...)
	said, err := cmd.StderrPipe()
	must(l.t, err)
	must(l.t, cmd.Start())
	l.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines, ready := bufio.NewScanner(said), false
	for !ready && lines.Scan() {
		ready = strings.Contains(lines.Text(), "ready")
	}
	if !ready {
		l.t.Fatalf("ktsnd is not ready: %v", lines.Err())
	}
	c, err := control.Dial(l.t.Context(), filepath.Join(l.dir, "control"))
	must(l.t, err)
	l.t.Cleanup(func() { _ = c.Close() })
	must(l.t, c.Attach(control.Attachment{
		Name: "test", Path: filepath.Join(l.dir, "ktsn"), Addresses: []netip.Addr{netip.MustParseAddr(near4), netip.MustParseAddr(near6)},
	}))
	for _, to := range []string{far4, far6} {
		must(l.t, c.Route(netip.MustParseAddr(to), control.Hop{MAC: l.mac}))
	}
	return c, cmd
}

// talk starts the talker with LibKTSN, which fails where no daemon is.
func (l *lan) talk(to string, options ...string) *exec.Cmd {
	cmd := exec.Command(built(l.t, "ktsn-talker"), append(options, to, strconv.Itoa(port))...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(l.t, "libktsn.so"), "KTSN_SOCKET="+filepath.Join(l.dir, "ktsn"), "KTSN_FALLBACK=fail")
	return cmd
}

// talked runs a talker to its end and returns how many it sent and how many were refused.
func talked(t *testing.T, cmd *exec.Cmd) (sent, refused int) {
	t.Helper()
	s := summarised(t, cmd)
	return s.Sent, s.Refused
}

// summary is what a talker says at its end: Missed and Invalid are what its socket's error
// queue has told of packets that were not sent.
type summary struct{ Sent, Refused, Missed, Invalid int }

func summarised(t *testing.T, cmd *exec.Cmd) summary {
	t.Helper()
	s, err := summaryOf(cmd)
	must(t, err)
	return s
}

func summaryOf(cmd *exec.Cmd) (s summary, err error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, errs.Bytes())
	}
	return s, json.Unmarshal(out, &s)
}

// arrival is one packet at the far end; its times are the kernel's, of CLOCK_REALTIME.
type arrival struct {
	sequence, bytes      int
	plannedNs, arrivedNs int64
	from                 netip.AddrPort
}

// hear reads what arrives until nothing has for so long.
func hear(t *testing.T, conn *net.UDPConn, idle time.Duration) []arrival {
	t.Helper()
	var all []arrival
	data, control := make([]byte, 2048), make([]byte, 128)
	for {
		must(t, conn.SetReadDeadline(time.Now().Add(idle)))
		n, c, _, from, err := conn.ReadMsgUDPAddrPort(data, control)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return all
		}
		must(t, err)
		var at unix.Timespec
		_, err = binary.Decode(control[unix.CmsgLen(0):c], binary.NativeEndian, &at)
		must(t, err)
		all = append(all, arrival{
			sequence: int(binary.BigEndian.Uint64(data[8:])), bytes: n, from: from,
			plannedNs: int64(binary.BigEndian.Uint64(data[16:])), arrivedNs: at.Nano(),
		})
	}
}

// only returns the one class that has packets.
func only(t *testing.T, c *control.Client) control.Class {
	t.Helper()
	s, err := c.Status()
	must(t, err)
	if len(s.Classes) != 1 {
		t.Fatalf("%d classes have packets, not one: %+v", len(s.Classes), s)
	}
	return s.Classes[0]
}

func TestPacketsLeaveAtTheirTimeAsTheirSenders(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon()
	for _, to := range []struct{ from, to, size string }{{near4, far4, "64"}, {near6, far6, "1400"}} {
		t.Run(to.to, func(t *testing.T) {
			conn := l.listen(to.to)
			sent, refused := talked(t, l.talk(to.to, "-n", "100", "-c", "1000000", "-l", ahead, "-s", to.size, "-p", "5"))
			got := hear(t, conn, allLeft)
			if sent != 100 || refused != 0 || len(got) != 100 {
				t.Fatalf("sent %d, refused %d, arrived %d: want 100, 0, 100", sent, refused, len(got))
			}
			for i, a := range got {
				if a.sequence != i || a.arrivedNs < a.plannedNs || strconv.Itoa(a.bytes) != to.size || a.from.Addr().String() != to.from || a.from.Port() != got[0].from.Port() {
					t.Fatalf("packet %d arrived as %+v", i, a)
				}
			}
		})
	}
	if k := only(t, c); k.Class != 5 || k.Sent != 200 || k.Queued != 200 || k.Waiting != 0 || k.Unexplained != 0 {
		t.Errorf("the daemon counts %+v", k)
	}
}

// pythons sends 50 packets, each half a second ahead, by what the standard library has.
const pythons = `
import socket, struct, sys, time
SO_TXTIME, CLOCK_TAI, LEAD = 61, 11, 500_000_000
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_TAI, 0))
s.connect((sys.argv[1], int(sys.argv[2])))
for i in range(50):
    at = time.clock_gettime_ns(CLOCK_TAI) + LEAD
    real = time.clock_gettime_ns(time.CLOCK_REALTIME) + LEAD
    s.sendmsg([struct.pack(">4sHHQQ", b"SKRY", 0, 1, i, real)], [(socket.SOL_SOCKET, SO_TXTIME, struct.pack("Q", at))])
    time.sleep(0.001)
`

// A program of another language, that knows nothing of ktsnd, needs nothing more.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	l := newLAN(t)
	c, _ := l.daemon()
	conn := l.listen(far4)
	program := exec.Command(python, "-c", pythons, far4, strconv.Itoa(port))
	program.Env = l.talk(far4).Env
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := hear(t, conn, allLeft)
	if k := only(t, c); len(got) != 50 || k.Sent != 50 {
		t.Fatalf("%d of 50 packets arrived, and the daemon counts %+v", len(got), k)
	}
	for i, a := range got {
		if early := a.plannedNs - a.arrivedNs; a.sequence != i || early > int64(time.Millisecond) { // its two clocks are read one after the other
			t.Errorf("packet %d arrived as %+v", i, a)
		}
	}
}

// A packet whose gate is shut at its time waits for the next window.
func TestPacketsKeepToTheirWindow(t *testing.T) {
	const cycle, window = 20 * time.Millisecond, 10 * time.Millisecond
	l := newLAN(t)
	c, _ := l.daemon()
	_, err := c.Load(control.Schedule{Cycle: cycle, Entries: []control.Entry{{Open: 1 << 3, For: window}, {Open: 1 << 7, For: cycle - window}}})
	must(t, err)
	conn := l.listen(far4)
	talked(t, l.talk(far4, "-n", "300", "-c", "1000000", "-l", ahead, "-p", "3"))
	got := hear(t, conn, allLeft)
	if len(got) != 300 {
		t.Fatalf("%d of 300 packets arrived", len(got))
	}
	var tai, wall unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_TAI, &tai))
	must(t, unix.ClockGettime(unix.CLOCK_REALTIME, &wall))
	offset := time.Duration(tai.Nano() - wall.Nano()).Round(time.Second)
	var outside uint64
	for _, a := range got {
		if time.Duration(a.arrivedNs+int64(offset))%cycle >= window {
			outside++
		}
	}
	if k := only(t, c); k.Sent != 300 || k.Unexplained != 0 || outside > k.Misplaced {
		t.Errorf("%d packets arrived outside of their window, and the daemon counts %+v", outside, k)
	}
}

// A program that asks for it is told of what was not sent, as by ETF.
func TestErrorQueues(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon("--late-ns", "1000000")
	_, err := c.Load(control.Schedule{Cycle: 20 * time.Millisecond, Entries: []control.Entry{{Open: 1 << 3, For: 2 * time.Millisecond}, {Open: 1 << 7, For: 18 * time.Millisecond}}})
	must(t, err)
	for _, to := range []string{far4, far6} {
		if s := summarised(t, l.talk(to, "-e", "-n", "5", "-l", "-50000000", "-p", "7")); s.Invalid != 5 || s.Missed != 0 {
			t.Errorf("to %s the past: %+v, want 5 invalid", to, s)
		}
		s := summarised(t, l.talk(to, "-e", "-n", "60", "-l", ahead, "-p", "3"))
		if s.Invalid != 0 || s.Missed < 40 || s.Missed > 57 {
			t.Errorf("to %s a gate that is shut most of the time: %+v, want some 50 missed", to, s)
		}
		if s := summarised(t, l.talk(to, "-n", "60", "-l", ahead, "-p", "3")); s.Missed != 0 {
			t.Errorf("to %s without asking: %+v", to, s)
		}
	}
}

// A daemon that naps finds packets after their time; they came before it, and leave.
func TestNapsMakeNoPacketLate(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon("--nap-ns", "10000000")
	conn := l.listen(far4)
	talked(t, l.talk(far4, "-n", "50", "-c", "17000000", "-l", "2000000"))
	hear(t, conn, 300*time.Millisecond)
	s, err := c.Status()
	must(t, err)
	if k := only(t, c); k.Late > 5 || k.Sent < 45 { // some the machine may have held up
		t.Errorf("the daemon counts %+v", k)
	}
	if s.Gap.P99 > 5*time.Millisecond {
		t.Errorf("its naps are gaps in polling: %+v", s.Gap)
	}
}

// What cannot leave in time is refused and counted, and harms nothing else.
func TestPacketsWithoutAChanceAreRefused(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon("--horizon-ns", "1000000000")
	conn := l.listen(far4)
	talked(t, l.talk(far4, "-n", "5", "-l", "-50000000"))  // late
	talked(t, l.talk(far4, "-n", "5", "-l", "3000000000")) // beyond the horizon
	talked(t, l.talk("10.9.0.77", "-n", "5"))              // nobody knows the way
	talked(t, l.talk(far4, "-n", "10", "-l", ahead))       // as it should be
	hear(t, conn, allLeft)
	s, err := c.Status()
	must(t, err)
	if len(s.Classes) != 1 {
		t.Fatalf("the daemon counts %+v", s)
	}
	if k := s.Classes[0]; k.Late != 5 || k.Early != 5 || k.Sent != 10 || s.Unrouted != 5 || s.Clients != 0 || s.Sockets != 0 {
		t.Errorf("the daemon counts %+v", s)
	}
}

// Through a tunnel packets reach an address that is at another node, whose kernel takes
// them out.
func TestPacketsGoThroughATunnel(t *testing.T) {
	const inNear, inFar, vni = "10.99.0.1", "10.99.0.2", 42
	l := newLAN(t)
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pod"}})) // for its address
	addressed(t, new(netlink.Handle), "pod", inNear)
	h, err := netlink.NewHandleAt(l.far)
	must(t, err)
	defer h.Close()
	away, err := h.LinkByName("away")
	must(t, err)
	must(t, h.LinkAdd(&netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: "tunnel", MTU: 1450}, VxlanId: vni, VtepDevIndex: away.Attrs().Index, Port: 4789, SrcAddr: net.ParseIP(far4),
	}))
	addressed(t, h, "tunnel", inFar)
	tunnel, err := h.LinkByName("tunnel")
	must(t, err)
	c, _ := l.daemon("--tunnel-from", near4, "--vni", strconv.Itoa(vni))
	must(t, c.Detach("test"))
	must(t, c.Attach(control.Attachment{Name: "pod", Path: filepath.Join(l.dir, "ktsn"), Addresses: []netip.Addr{netip.MustParseAddr(inNear)}}))
	must(t, c.Route(netip.MustParseAddr(inFar), control.Hop{MAC: tunnel.Attrs().HardwareAddr, Node: netip.MustParseAddr(far4), NodeMAC: l.mac}))
	conn := l.listen(inFar)
	talked(t, l.talk(inFar, "-n", "50", "-l", ahead, "-s", "1422"))
	talked(t, l.talk(inFar, "-n", "5", "-l", ahead, "-s", "1423")) // a byte too long for the tunnel
	got := hear(t, conn, allLeft)
	if len(got) != 50 || got[0].from.Addr().String() != inNear || got[0].bytes != 1422 {
		t.Fatalf("%d of 50 packets arrived, the first as %+v", len(got), got[:min(len(got), 1)])
	}
	if s, err := c.Status(); err != nil || s.Malformed != 5 {
		t.Errorf("%d packets are too long, not 5 (%v)", s.Malformed, err)
	}
	if err := c.Route(netip.MustParseAddr(far6), control.Hop{MAC: l.mac, Node: netip.MustParseAddr(far6), NodeMAC: l.mac}); !errors.Is(err, control.ErrRefused) {
		t.Errorf("a node of another family: %v", err)
	}
}

// addressed gives an interface an address of a /24, and sets it up.
func addressed(t *testing.T, h *netlink.Handle, name, address string) {
	t.Helper()
	link, err := h.LinkByName(name)
	must(t, err)
	a, err := netlink.ParseAddr(address + "/24")
	must(t, err)
	must(t, h.AddrAdd(link, a))
	must(t, h.LinkSetUp(link))
}

// A daemon that is killed and started again is found again, by a program that goes on.
func TestProgramsFindTheNextDaemon(t *testing.T) {
	l := newLAN(t)
	c, daemon := l.daemon()
	conn := l.listen(far4)
	talker := l.talk(far4, "-n", "2000", "-l", ahead)
	type end struct {
		summary
		err error
	}
	ended := make(chan end, 1)
	go func() {
		s, err := summaryOf(talker)
		ended <- end{s, err}
	}()
	deadline := time.Now().Add(5 * time.Second)
	for s, _ := c.Status(); s.Clients == 0 && time.Now().Before(deadline); s, _ = c.Status() {
		time.Sleep(time.Millisecond)
	}
	must(t, daemon.Process.Kill())
	_ = daemon.Wait()
	again, _ := l.daemon()
	talked := <-ended
	must(t, talked.err)
	got := hear(t, conn, allLeft)
	if k := only(t, again); k.Sent == 0 {
		t.Errorf("the second daemon counts %+v", k)
	}
	if len(got) == 0 || got[len(got)-1].sequence != 1999 {
		t.Errorf("%d of 2000 were sent, %d arrived, and not the last", talked.Sent, len(got))
	}
}

// What needs a capability, but that to lock memory, is done before it serves; systemd is
// told when it does.
func TestItKeepsOneCapability(t *testing.T) {
	l := newLAN(t)
	path := filepath.Join(l.dir, "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	defer told.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	_, daemon := l.daemon()
	must(t, told.SetReadDeadline(time.Now().Add(5*time.Second)))
	text := make([]byte, 100)
	n, err := told.Read(text)
	if err != nil || string(text[:n]) != "READY=1" {
		t.Errorf("systemd is told %q, %v", text[:n], err)
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(daemon.Process.Pid), "status"))
	must(t, err)
	const lock = "0000000000004000" // CAP_IPC_LOCK
	if !strings.Contains(string(status), "CapEff:\t"+lock) || !strings.Contains(string(status), "CapPrm:\t"+lock) {
		t.Errorf("it keeps capabilities:\n%s", status)
	}
}

func TestRequestsThatCannotBe(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon()
	for name, ask := range map[string]func() error{
		"an attachment of that name": func() error { return c.Attach(control.Attachment{Name: "test", Path: filepath.Join(l.dir, "other")}) },
		"listen at its path":         func() error { return c.Attach(control.Attachment{Name: "other", Path: "/nowhere/at/all"}) },
		"has a name, a path":         func() error { return c.Attach(control.Attachment{Name: "", Path: "x"}) },
		"no attachment of that name": func() error { return c.Detach("other") },
		"the list cannot run":        func() error { _, err := c.Load(control.Schedule{Cycle: time.Millisecond}); return err },
	} {
		if err := ask(); !errors.Is(err, control.ErrRefused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: want it refused, as %q", err, name)
		}
	}
	must(t, c.Detach("test"))
	if _, err := os.Stat(filepath.Join(l.dir, "ktsn")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the path of what is detached: %v", err)
	}
}
