package guest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/guest"
)

// scriptProgram runs the overlay's scheduler by a script; meson builds it.
var scriptProgram = filepath.Join("..", "..", "build", "none", "sched-script")

// TestTaprio holds the overlay's scheduler to the kernel's own: taprio's gates, with ETF's
// queues and without, on a kernel that has both.
func TestTaprio(t *testing.T) {
	if guest.Inside() {
		testTaprio(t)
		return
	}
	machine := newMachine(t)
	script, err := filepath.Abs(scriptProgram)
	must(t, err)
	if _, err := os.Stat(script); err != nil {
		t.Skipf("%v: overlay/dataplane/build.sh builds it, with meson", err)
	}
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skip("no tc, which the package iproute2 has")
	}
	machine.Programs, machine.Modules = []string{script, "tc"}, []string{"sch_taprio", "sch_etf"}
	boot(t, machine)
}

const (
	taprioSchedules = 20
	taprioClasses   = 8
	taprioPackets   = 24
	taprioCycles    = 3
	// taprioMargin is how far from where a gate moves packets are planned: ETF releases them
	// up to etfDelta early, and a guest's timers are late.
	taprioMargin = 6 * time.Millisecond
	etfDelta     = 4 * time.Millisecond
	taprioPort   = 7000
)

// gateEntry has the gates of a mask of classes open for a time.
type gateEntry struct {
	open uint8
	last time.Duration
}

// timedPacket is of a class, planned for a time after the base of its schedule.
type timedPacket struct {
	class int
	at    time.Duration
}

func testTaprio(t *testing.T) {
	cable := newCable(t)
	for seed := range taprioSchedules {
		random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // schedules
		entries, cycle := randomEntries(random)
		packets := randomPackets(random, entries, cycle)
		withETF := seed%2 == 0
		name := fmt.Sprintf("schedule %d, gates alone", seed+1)
		if withETF {
			name = fmt.Sprintf("schedule %d, with ETF", seed+1)
		}
		t.Run(name, func(t *testing.T) {
			base := cable.schedule(t, entries, withETF)
			kernels := cable.send(t, base, packets, withETF)
			ours := scripted(t, entries, cycle, packets, withETF)
			sent := 0
			for i, p := range packets {
				k, o := windowOf(entries, cycle, kernels[i]), windowOf(entries, cycle, ours[i])
				if k != o {
					t.Errorf("packet %d of class %d, planned for %s: the kernel has it leave in %s (%s), sched in %s (%s)", i, p.class, p.at, k, kernels[i], o, ours[i])
				}
				if o != neverSent {
					sent++
				}
			}
			t.Logf("%d of %d packets were sent", sent, len(packets))
		})
	}
}

// randomEntries are 3 to 6 of 20 to 60 ms.
func randomEntries(random *rand.Rand) (entries []gateEntry, cycle time.Duration) {
	for range 3 + random.IntN(4) {
		e := gateEntry{uint8(random.IntN(256)), time.Duration(20+random.IntN(41)) * time.Millisecond} //nolint:gosec // of 8 bits
		entries, cycle = append(entries, e), cycle+e.last
	}
	return entries, cycle
}

// randomPackets are in the order of their times, none near to where a gate moves.
func randomPackets(random *rand.Rand, entries []gateEntry, cycle time.Duration) (all []timedPacket) {
	for range taprioPackets {
		entry := random.IntN(len(entries))
		at := time.Duration(random.IntN(taprioCycles)) * cycle
		for _, e := range entries[:entry] {
			at += e.last
		}
		at += taprioMargin + time.Duration(random.Int64N(int64(entries[entry].last-2*taprioMargin)))
		all = append(all, timedPacket{random.IntN(taprioClasses), at})
	}
	slices.SortFunc(all, func(a, b timedPacket) int { return int(a.at - b.at) })
	return all
}

// neverSent is the window of a packet that did not leave.
const neverSent = "none"

// windowOf is in which entry of which cycle a packet leaves, at a time after the base;
// 0 is never.
func windowOf(entries []gateEntry, cycle, at time.Duration) string {
	if at == 0 {
		return neverSent
	}
	into := at % cycle
	for i, e := range entries {
		if into < e.last {
			return fmt.Sprintf("entry %d of cycle %d", i+1, at/cycle+1)
		}
		into -= e.last
	}
	return neverSent
}

// scripted is when the scheduler of the overlay has each packet leave; 0 is never. ETF gives
// up what its gate is shut for at its time.
func scripted(t *testing.T, entries []gateEntry, cycle time.Duration, packets []timedPacket, withETF bool) []time.Duration {
	t.Helper()
	const most = int64(time.Minute)
	late := most
	if withETF {
		late = 0
	}
	var script strings.Builder
	fmt.Fprintf(&script, "config link=0 horizon=%d late=%d\nlist 0 %d 0", most, late, cycle)
	for _, e := range entries {
		fmt.Fprintf(&script, " %02x:%d", e.open, e.last)
	}
	script.WriteByte('\n')
	for i, p := range packets {
		if !withETF {
			fmt.Fprintf(&script, "until %d\n", p.at)
		}
		fmt.Fprintf(&script, "push %d %d %d 64\n", i, p.class, p.at)
	}
	fmt.Fprintf(&script, "until %d\n", 2*taprioCycles*cycle)
	c := exec.CommandContext(t.Context(), "sched-script")
	c.Stdin = strings.NewReader(script.String())
	out, err := c.Output()
	must(t, err)
	times := make([]time.Duration, len(packets))
	for line := range strings.Lines(string(out)) {
		var at time.Duration
		var packet int
		if n, _ := fmt.Sscanf(line, "%d %d sent", &at, &packet); n == 2 && strings.HasSuffix(strings.TrimSpace(line), " sent") {
			times[packet] = at
		}
	}
	return times
}

// cable is a pair of interfaces: what is sent by one is heard at the other.
type cable struct {
	heard int // a packet socket
}

// newCable lays one whose near end has a queue for each class, and whose far end is in a
// namespace of its own: only what crosses one is stamped as it arrives.
func newCable(t *testing.T) cable {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := netns.Get()
	must(t, err)
	there, err := netns.New()
	must(t, err)
	must(t, netns.Set(here))
	near := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", NumTxQueues: taprioClasses, NumRxQueues: taprioClasses}, PeerName: "far"}
	must(t, netlink.LinkAdd(near))
	far, err := netlink.LinkByName("far")
	must(t, err)
	link, err := netlink.LinkByName("near")
	must(t, err)
	must(t, netlink.LinkSetNsFd(far, int(there)))
	away, err := netlink.NewHandleAt(there, unix.NETLINK_ROUTE)
	must(t, err)
	defer away.Close()
	must(t, away.LinkSetUp(far))
	must(t, netlink.LinkSetUp(link))
	address, err := netlink.ParseAddr("10.77.0.1/24")
	must(t, err)
	must(t, netlink.AddrAdd(link, address))
	must(t, netlink.NeighAdd(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.IPv4(10, 77, 0, 2), HardwareAddr: far.Attrs().HardwareAddr}))
	must(t, netns.Set(there))
	defer func() { must(t, netns.Set(here)) }()
	heard, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, int(networkOrder(unix.ETH_P_IP)))
	must(t, err)
	must(t, unix.Bind(heard, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: far.Attrs().Index}))
	must(t, unix.SetsockoptInt(heard, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	must(t, unix.SetNonblock(heard, true))
	return cable{heard}
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

// tai is the time of CLOCK_TAI.
func tai(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_TAI, &now))
	return time.Duration(now.Nano())
}

// schedule has the near end keep to entries, and says from when on. A class that gets its
// queue stops the kernel's list, which is therefore loaded once more.
func (c cable) schedule(t *testing.T, entries []gateEntry, withETF bool) (base time.Duration) {
	t.Helper()
	_ = exec.CommandContext(t.Context(), "tc", "qdisc", "delete", "dev", "near", "root").Run() // the first time there is none
	list := func(verb string) {
		base = tai(t) + 200*time.Millisecond
		args := []string{"qdisc", verb, "dev", "near", "parent", "root", "handle", "100", "taprio"}
		args = append(args, strings.Fields("num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7")...)
		args = append(args, "base-time", strconv.FormatInt(int64(base), 10))
		for _, e := range entries {
			args = append(args, "sched-entry", "S", fmt.Sprintf("%02x", e.open), strconv.FormatInt(int64(e.last), 10))
		}
		traffic(t, append(args, "clockid", "CLOCK_TAI")...)
	}
	list("add")
	if !withETF {
		return base
	}
	for class := range taprioClasses {
		traffic(t, "qdisc", "add", "dev", "near", "parent", fmt.Sprintf("100:%d", class+1), "etf", "clockid", "CLOCK_TAI", "delta", strconv.FormatInt(int64(etfDelta), 10))
	}
	list("change")
	return base
}

func traffic(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "tc", args...).CombinedOutput(); err != nil {
		t.Fatalf("tc %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// send has packets leave, by ETF at their times or handed over then, and says when each was
// heard after the base; 0 is never.
func (c cable) send(t *testing.T, base time.Duration, packets []timedPacket, withETF bool) []time.Duration {
	t.Helper()
	sockets := make([]int, taprioClasses)
	for class := range sockets {
		sockets[class] = classSocket(t, class, withETF)
		t.Cleanup(func() { _ = unix.Close(sockets[class]) })
	}
	time.Sleep(base - tai(t))
	for i, p := range packets {
		payload := binary.BigEndian.AppendUint32(nil, uint32(i)) //nolint:gosec // a few
		var control []byte
		if withETF {
			control = make([]byte, unix.CmsgSpace(8))
			binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(8)))
			binary.NativeEndian.PutUint32(control[8:], unix.SOL_SOCKET)
			binary.NativeEndian.PutUint32(control[12:], unix.SCM_TXTIME)
			binary.NativeEndian.PutUint64(control[unix.CmsgLen(0):], uint64(base+p.at))
		} else {
			time.Sleep(base + p.at - tai(t))
		}
		must(t, unix.Sendmsg(sockets[p.class], payload, control, nil, 0))
	}
	last := packets[len(packets)-1].at
	time.Sleep(base + last + taprioWait - tai(t))
	return c.hear(t, base, len(packets))
}

// taprioWait is how long after the last packet all are heard: two cycles at least.
const taprioWait = 800 * time.Millisecond

// classSocket sends to the far end in a class.
func classSocket(t *testing.T, class int, withETF bool) int {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(t, err)
	must(t, unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PRIORITY, class))
	if withETF {
		const txtime = unix.CLOCK_TAI // struct sock_txtime: the clock, then flags
		option := binary.NativeEndian.AppendUint32(nil, txtime)
		must(t, unix.SetsockoptString(s, unix.SOL_SOCKET, unix.SO_TXTIME, string(append(option, 0, 0, 0, 0))))
	}
	must(t, unix.Connect(s, &unix.SockaddrInet4{Port: taprioPort, Addr: [4]byte{10, 77, 0, 2}}))
	return s
}

// hear takes what has arrived.
func (c cable) hear(t *testing.T, base time.Duration, count int) []time.Duration {
	t.Helper()
	const headers = 20 + 8
	var tai, wall unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_TAI, &tai))
	must(t, unix.ClockGettime(unix.CLOCK_REALTIME, &wall))
	offset := time.Duration(tai.Nano() - wall.Nano()).Round(time.Second)
	times := make([]time.Duration, count)
	data, control := make([]byte, 256), make([]byte, 128)
	for {
		n, m, _, _, err := unix.Recvmsg(c.heard, data, control, 0)
		if errors.Is(err, unix.EAGAIN) {
			return times
		}
		must(t, err)
		var at unix.Timespec
		_, err = binary.Decode(control[unix.CmsgLen(0):m], binary.NativeEndian, &at)
		must(t, err)
		if n < headers+4 || binary.BigEndian.Uint16(data[22:]) != taprioPort {
			continue
		}
		times[binary.BigEndian.Uint32(data[headers:])] = time.Duration(at.Nano()) + offset - base
	}
}
