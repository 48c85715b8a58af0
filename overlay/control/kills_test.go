package control_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	kills  = flag.Int("kills", 6, "daemons and programs that TestKills kills")
	within = flag.Duration("within", 5*time.Second, "how long after a daemon is back programs may take to send again")
)

// Killed at any moment, a program leaves nothing in the daemon, and a daemon's programs send
// again once there is another.
func TestKills(t *testing.T) {
	l := newLAN(t)
	l.listen(far4)
	c, daemon := l.daemon()
	before := held(t, daemon.Process.Pid)
	moment := rand.New(rand.NewPCG(1, uint64(*kills))) //nolint:gosec // moments to kill at
	for range *kills / 2 {
		program := l.talk(far4, "-n", "100000", "-c", "100000", "-l", "20000000")
		must(t, program.Start())
		time.Sleep(time.Duration(moment.IntN(int(30 * time.Millisecond))))
		must(t, program.Process.Kill())
		_ = program.Wait()
	}
	until(t, time.Second, "the daemon still has clients", func() bool {
		s, err := c.Status()
		must(t, err)
		return s.Clients == 0 && s.Sockets == 0
	})
	until(t, 5*time.Second, "the daemon holds what it was passed", func() bool { return held(t, daemon.Process.Pid) == before })
	program := l.talk(far4, "-n", "1000000", "-l", "20000000")
	must(t, program.Start())
	defer func() { _ = program.Process.Kill(); _ = program.Wait() }()
	slowest := time.Duration(0)
	for range *kills / 2 {
		time.Sleep(time.Duration(moment.IntN(int(30 * time.Millisecond))))
		must(t, daemon.Process.Kill())
		_ = daemon.Wait()
		c, daemon = l.daemon()
		back := time.Now()
		until(t, *within, "the program does not send again", func() bool {
			s, err := c.Status()
			must(t, err)
			return len(s.Classes) > 0 && s.Classes[0].Sent > 0
		})
		slowest = max(slowest, time.Since(back))
	}
	t.Logf("recovered within %s", slowest.Round(time.Millisecond))
}

// holding is what a daemon has open for programs.
type holding struct{ descriptors, memories int }

func held(t *testing.T, pid int) (h holding) {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	must(t, err)
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	must(t, err)
	return holding{len(open), strings.Count(string(maps), "memfd:ktsn")}
}

// until waits for what is to become true.
func until(t *testing.T, most time.Duration, otherwise string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > most {
			t.Fatalf("after %s %s", most, otherwise)
		}
	}
}
