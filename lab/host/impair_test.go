package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// datagrams go from one node to another, each with its number and a pattern.
type datagrams struct {
	from, to *net.UDPConn
	target   netip.AddrPort
}

// datagramBytes is the payload of each.
const datagramBytes = 1000

// openDatagrams opens sockets in two nodes, at their addresses of IPv4. Without
// checksums the receiver is given what it would otherwise drop.
func openDatagrams(t *testing.T, lab *host.Lab, from, to topology.Ref, checksums bool) datagrams {
	t.Helper()
	address := func(ref topology.Ref) string {
		node, err := lab.Topology.Node(ref)
		if err != nil {
			t.Fatal(err)
		}
		return node.Data.Addr().String()
	}
	return between(openSocket(t, lab, from, address(from), checksums), openSocket(t, lab, to, address(to), checksums))
}

// between two sockets.
func between(from, to *net.UDPConn) datagrams {
	return datagrams{from: from, to: to, target: to.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// openSocket opens one in a node until the test ends.
func openSocket(t *testing.T, lab *host.Lab, node topology.Ref, address string, checksums bool) *net.UDPConn {
	t.Helper()
	noCheck := 1
	if checksums {
		noCheck = 0
	}
	const room = 8 << 20 // for all that arrives while the test's process has no core
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		e := raw.Control(func(fd uintptr) {
			err = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, noCheck),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room))
		})
		return errors.Join(err, e)
	}}
	var conn net.PacketConn
	err := lab.Within(node, func() (err error) {
		conn, err = c.ListenPacket(context.Background(), "udp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.UDPConn)
}

func datagram(number int) []byte {
	payload := make([]byte, datagramBytes)
	for i := range payload {
		payload[i] = byte(number + i)
	}
	binary.BigEndian.PutUint32(payload, uint32(number))
	return payload
}

// arrived is a datagram as it was received.
type arrived struct {
	number int
	// flipped bits of the payload behind its number.
	flipped int
	// after the first was sent, and after it was sent itself.
	after, took time.Duration
}

// cross sends n datagrams, one each interval, and waits until none has come for a
// while. What does not look like one of them is left out.
func (d datagrams) cross(t *testing.T, n int, interval time.Duration) []arrived {
	t.Helper()
	all, err := d.crossed(n, interval)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// crossed is cross where tests may not end at once.
func (d datagrams) crossed(n int, interval time.Duration) (all []arrived, err error) {
	start := time.Now()
	times := make([]time.Duration, n)
	sent := make(chan error, 1)
	go func() {
		for i := range times {
			time.Sleep(time.Until(start.Add(time.Duration(i) * interval)))
			times[i] = time.Since(start)
			if _, err := d.from.WriteToUDPAddrPort(datagram(i), d.target); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	buffer := make([]byte, 2*datagramBytes)
	for sending := true; ; {
		if err := d.to.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			return nil, errors.Join(err, <-sent)
		}
		length, err := d.to.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !sending {
				break
			}
			if err := <-sent; err != nil { // some may still be on their way
				return nil, err
			}
			sending = false
			continue
		}
		if err != nil {
			return nil, errors.Join(err, <-sent)
		}
		number := int(binary.BigEndian.Uint32(buffer))
		if length != datagramBytes || number >= n {
			continue
		}
		a := arrived{number: number, after: time.Since(start)}
		for i, want := range datagram(number) {
			a.flipped += bits.OnesCount8(buffer[i] ^ want)
		}
		all = append(all, a)
	}
	for i := range all {
		all[i].took = all[i].after - times[all[i].number]
	}
	return all, nil
}

// seen are the counters of a direction.
func seen(t *testing.T, lab *host.Lab, name string) impair.Counters {
	t.Helper()
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.Counters[name]
}

// likely holds that a count of n lies within 4 standard deviations of what was
// asked for.
func likely(t *testing.T, what string, count, n int, p float64) {
	t.Helper()
	const deviations = 4
	if off := float64(count) - p*float64(n); math.Abs(off) > deviations*math.Sqrt(p*(1-p)*float64(n)) {
		t.Errorf("%s: %d of %d, asked %g", what, count, n, p)
	}
}

// onUserspace has the links of a lab emulated in user space.
func onUserspace(t *testing.T, suffix string) *host.Lab {
	t.Helper()
	return upWith(t, square(), host.Options{Name: labName(suffix), Agent: agent, Backend: "userspace"})
}

// A duplicated packet arrives twice, its copy right behind it and the same, over
// a routed and over a bridged link.
func TestDuplicatesArriveTwice(t *testing.T) {
	lab := onUserspace(t, "twice")
	for _, ends := range []struct{ from, to topology.Ref }{{"c1/head", "c2/head"}, {"c1/head", "c1/worker"}} {
		if _, err := os.Stat("/proc/sys/net/bridge"); err != nil && ends.to == "c1/worker" {
			t.Skip("needs br_netfilter: packets inside a cluster are bridged")
		}
		const n, p = 400, 0.3
		does := delay(2)
		does.Duplicate = p
		set(t, lab, host.Link{From: ends.from, To: ends.to, Does: does})
		all := openDatagrams(t, lab, ends.from, ends.to, true).cross(t, n, 500*time.Microsecond)
		twice := 0
		for i, a := range all {
			if a.flipped > 0 {
				t.Errorf("datagram %d has %d other bits", a.number, a.flipped)
			}
			if i > 0 && a.number == all[i-1].number {
				twice++
			} else if a.number != i-twice {
				t.Fatalf("%s to %s: datagram %d came as number %d, after %d copies", ends.from, ends.to, a.number, i, twice)
			}
		}
		c := seen(t, lab, string(ends.from+">"+ends.to))
		if len(all) != n+twice || c.Duplicated != uint64(twice) || c.Packets != n || c.Lost+c.Overflowed+c.Missed > 0 {
			t.Errorf("%s to %s: %d of %d arrived, %d twice; the link counts %+v", ends.from, ends.to, len(all), n, twice, c)
		}
		likely(t, "duplicated", twice, n, p)
	}
}

// A copy takes its place before the rate.
func TestDuplicatesTakeTheRate(t *testing.T) {
	lab := onUserspace(t, "rate")
	const n, frame = 20, datagramBytes + 8 + 20 + impair.EthernetHeader
	does := impair.Impairment{Duplicate: 1, Rate: 2 * frame * 8 * 1000 / 10} // a frame in 5 ms
	set(t, lab, host.Link{From: "c1", To: "c2", Does: does})
	all := openDatagrams(t, lab, "c1/head", "c2/head", true).cross(t, n, 0)
	if len(all) != 2*n {
		t.Fatalf("%d of %d datagrams arrived, want each twice", len(all), n)
	}
	for i, a := range all {
		want := time.Duration(i+1) * 5 * time.Millisecond
		if a.number != i/2 || a.after < want || a.after > want+50*time.Millisecond {
			t.Errorf("number %d is datagram %d after %s, want %d after %s", i, a.number, a.after, i/2, want)
		}
	}
}

// A corrupted packet has one other bit; by its checksum the receiver drops it.
func TestCorruptedPacketsHaveOneBitFlipped(t *testing.T) {
	lab := onUserspace(t, "flipped")
	const n, p = 400, 0.3
	does := delay(2)
	does.Corrupt = p
	set(t, lab, host.Link{From: "c1", To: "c2", Does: does})
	flipped, whole := 0, 0
	for _, a := range openDatagrams(t, lab, "c1/head", "c2/head", false).cross(t, n, 500*time.Microsecond) {
		switch a.flipped {
		case 0:
			whole++
		case 1:
			flipped++
		default:
			t.Errorf("datagram %d has %d other bits", a.number, a.flipped)
		}
	}
	// What was flipped in the UDP header or in the number is not among them.
	c := seen(t, lab, "c1>c2")
	if corrupted := int(c.Corrupted); whole != n-corrupted || flipped > corrupted || flipped < corrupted*9/10 || c.Lost+c.Overflowed+c.Missed > 0 {
		t.Errorf("%d whole and %d flipped of %d; the link counts %+v", whole, flipped, n, c)
	}
	likely(t, "corrupted", int(c.Corrupted), n, p)

	set(t, lab, host.Link{From: "c1", To: "c2", Does: does})
	all := openDatagrams(t, lab, "c1/head", "c2/head", true).cross(t, n, 500*time.Microsecond)
	for _, a := range all {
		if a.flipped > 0 {
			t.Errorf("datagram %d came through its checksum with %d other bits", a.number, a.flipped)
		}
	}
	if c := seen(t, lab, "c1>c2"); len(all) != n-int(c.Corrupted) || c.Corrupted == 0 {
		t.Errorf("%d of %d arrived; the link counts %+v", len(all), n, c)
	}
}

// A reordered packet overtakes all that wait in the delay; none of them overtakes
// another.
func TestReorderedPacketsOvertake(t *testing.T) {
	lab := onUserspace(t, "overtake")
	const n, p = 400, 0.1
	does := delay(200) // more than a machine is late
	does.Reorder = p
	set(t, lab, host.Link{From: "c1", To: "c2", Does: does})
	all := openDatagrams(t, lab, "c1/head", "c2/head", true).cross(t, n, 500*time.Microsecond)
	skipped, overtook := 0, 0
	least, last := n, n // numbers of those that arrived later
	for _, a := range slices.Backward(all) {
		switch {
		case a.took < does.Delay.Std()/2:
			skipped++
			if a.number > least {
				overtook++
			}
		case a.took < does.Delay.Std():
			t.Errorf("datagram %d was on its way for %s", a.number, a.took)
		case a.number > last:
			t.Errorf("datagram %d overtook %d, though both were delayed", a.number, last)
		default:
			last = a.number
		}
		least = min(least, a.number)
	}
	c := seen(t, lab, "c1>c2")
	if len(all) != n || skipped != int(c.Reordered) || c.Lost+c.Overflowed+c.Missed > 0 {
		t.Errorf("%d of %d arrived, %d without delay; the link counts %+v", len(all), n, skipped, c)
	}
	if overtook < skipped-2 { // the first has none before it
		t.Errorf("%d of %d overtook", overtook, skipped)
	}
	likely(t, "reordered", skipped, n, p)
}

// Stages are links in a row: delays add up, and the loss of one falls on what the
// other has let through.
func TestStagesAddUp(t *testing.T) {
	lab := onUserspace(t, "stages")
	first, second := delay(6), delay(4)
	second.Loss = 0.2
	link := host.Link{From: "c1", To: "c2", Does: first, Then: []impair.Impairment{delay(5), second}}
	set(t, lab, link)
	const n = 400
	all := openDatagrams(t, lab, "c1/head", "c2/head", true).cross(t, n, 500*time.Microsecond)
	c := seen(t, lab, "c1>c2")
	if c.Packets != n || c.Lost != uint64(n-len(all)) || c.Overflowed+c.Missed > 0 {
		t.Errorf("%d of %d arrived; the link counts %+v", len(all), n, c)
	}
	likely(t, "lost", int(c.Lost), n, 0.2)
	second.Loss = 0
	link.Then[1] = second
	set(t, lab, link)
	slow(t, rtt(t, lab, "c1/head", "c2-head"), 15*time.Millisecond)
}
