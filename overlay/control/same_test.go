package control_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const group4 = "239.9.9.9"

// A program finds no difference between the kernel alone and LibKTSN before that: what calls
// return, which errors there are, and which packets arrive.
func TestProgramsSeeNoDifference(t *testing.T) {
	same, err := filepath.Abs(filepath.Join("..", "..", "build", "none", "ktsn-same"))
	must(t, err)
	if _, err := os.Stat(same); err != nil {
		t.Skipf("%v: overlay/dataplane/build.sh builds it, with meson", err)
	}
	l := newLAN(t)
	c, _ := l.daemon()
	heard := l.hears()
	run := func(env ...string) (said string, arrived map[uint32]int) {
		program := exec.Command(same, far4, far6, group4, near4, strconv.Itoa(port))
		program.Env = append(os.Environ(), env...)
		out, err := program.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out), heard()
	}
	want, packets := run()
	got, timed := run(l.talk(far4).Env...)
	if got != want {
		t.Errorf("with LibKTSN it says\n%s\nby the kernel\n%s", got, want)
	}
	if !maps.Equal(timed, packets) {
		t.Errorf("with LibKTSN packets of the lines %v arrive, by the kernel %v", timed, packets)
	}
	s, err := c.Status()
	must(t, err)
	all := 0
	for line, n := range packets {
		if line != 12 && line != 40 && line <= 1000 { // without a transmission time, and what the daemon does not do, which is longer
			all += n
		}
	}
	if len(s.Classes) != 1 || s.Classes[0].Sent != uint64(all) {
		t.Errorf("the daemon counts %+v, and %d packets had a transmission time", s, all)
	}
	if lines := strings.Count(want, "\n"); lines < 40 || len(packets) < 9 {
		t.Errorf("%d lines and packets of %v are not what it does", lines, slices.Sorted(maps.Keys(packets)))
	}
}

// hears joins the group at the far end and listens for both families, of IPv4 at every
// address; what it returns tells
// the packets that have come since, by the line that they are of.
func (l *lan) hears() func() map[uint32]int {
	l.t.Helper()
	conns := []*net.UDPConn{l.listen(far6)}
	l.there(func() error {
		away, err := net.InterfaceByName("away")
		if err != nil {
			return err
		}
		group, err := net.ListenMulticastUDP("udp4", away, &net.UDPAddr{IP: net.ParseIP(group4), Port: port})
		conns = append(conns, group)
		return err
	})
	l.t.Cleanup(func() { _ = conns[1].Close() })
	return func() map[uint32]int {
		all := map[uint32]int{}
		for _, conn := range conns {
			for {
				must(l.t, conn.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
				text := make([]byte, 100)
				n, err := conn.Read(text)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				must(l.t, err)
				if n == 4 {
					all[binary.BigEndian.Uint32(text)]++
				} else {
					all[uint32(1000+n)]++ //nolint:gosec // a short packet, by its length
				}
			}
		}
		return all
	}
}
