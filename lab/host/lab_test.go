package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// agent is the skerry-agent that TestMain builds.
var agent string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { agent = filepath.Join(dir, "skerry-agent") }))
}

// square is two clusters of two nodes.
func square() topology.Topology {
	return topology.Topology{
		Clusters: []topology.Cluster{
			{Name: "c1", Nodes: []string{"head", "worker"}},
			{Name: "c2", Nodes: []string{"head", "worker"}},
		},
		Service: "c1/worker", Client: "c2/worker",
	}
}

// labName is unique to the test process, so that labs of others stay alone.
func labName(suffix string) string { return fmt.Sprintf("test-%d-%s", os.Getpid(), suffix) }

// up takes a lab up until the test ends.
func up(t *testing.T, suffix string, shape topology.Topology) *host.Lab {
	t.Helper()
	return upWith(t, shape, host.Options{Name: labName(suffix), Agent: agent, Backend: "auto"})
}

func upWith(t *testing.T, shape topology.Topology, o host.Options) *host.Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces are made")
	}
	lab, err := host.Up(t.Context(), shape, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// tries numbers the commands of a test process: each has a control group.
var tries int

// sh runs a script in a node and returns what it printed.
func sh(t *testing.T, lab *host.Lab, node topology.Ref, script string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	tries++
	err := lab.Run(t.Context(), host.Command{
		Node: node, Name: fmt.Sprintf("try-%d", tries), Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out,
	})
	return out.String(), err
}

func mustSh(t *testing.T, lab *host.Lab, node topology.Ref, script string) string {
	t.Helper()
	out, err := sh(t, lab, node, script)
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", script, node, err, out)
	}
	return out
}

func TestNodesSeeEachOtherByName(t *testing.T) {
	lab := up(t, "names", square())
	for _, from := range lab.Topology.Nodes() {
		if got := strings.TrimSpace(mustSh(t, lab, from.Ref(), "hostname")); got != from.Host() {
			t.Errorf("%s is called %q", from, got)
		}
		for _, to := range lab.Topology.Nodes() {
			out := mustSh(t, lab, from.Ref(), "ping -c 1 -W 2 "+to.Host())
			if !strings.Contains(out, "("+to.Data.Addr().String()+")") {
				t.Errorf("%s finds %s elsewhere:\n%s", from, to, out)
			}
			mustSh(t, lab, from.Ref(), "ping -c 1 -W 2 "+to.Mgmt.Addr().String())
		}
	}
	if out := mustSh(t, lab, "c1/head", "ls /sys/class/net"); strings.Join(strings.Fields(out), " ") != "data lo mgmt" {
		t.Errorf("/sys of a node shows %q", out)
	}
	if _, err := sh(t, lab, "c1/nobody", "true"); err == nil {
		t.Error("a node that there is not runs a command")
	}
}

// machine is what a lab must not change: interfaces, routes, neighbours' rules
// and mounts of the machine's own namespaces.
func machine(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		fmt.Fprintln(&text, "interface", l.Attrs().Name, l.Attrs().MTU)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		fmt.Fprintln(&text, "route", r)
	}
	tables, err := new(nftables.Conn).ListTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		fmt.Fprintln(&text, "table", table.Family, table.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	text.Write(mounts)
	forward, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&text, "host name", name, "forwards", string(forward))
	return text.String()
}

func TestMachineStaysAsItIs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces are made")
	}
	before := machine(t)
	lab := up(t, "machine", square())
	set(t, lab, host.Link{From: "c1", To: "c2", Does: delay(1)})
	mustSh(t, lab, "c1/head", "ping -c 1 -W 2 c2-head")
	if now := machine(t); now != before {
		t.Errorf("while a lab is up:\n%s\nbefore:\n%s", now, before)
	}
	if err := lab.Down(); err != nil {
		t.Fatal(err)
	}
	if now := machine(t); now != before {
		t.Errorf("after the lab:\n%s\nbefore:\n%s", now, before)
	}
}

// Labs have the same addresses; what is sent in one is heard in that one alone.
func TestLabsSideBySide(t *testing.T) {
	labs := []*host.Lab{up(t, "one", square()), up(t, "two", square()), up(t, "three", square())}
	for i, lab := range labs {
		p, err := lab.Start(host.Command{
			Node: "c1/worker", Name: "service", Args: []string{agent, "serve", "hello-world", "--listen", "10.1.0.2:8080"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = p.Stop(0) })
		awaitDial(t, lab, "c2/worker", "10.1.0.2:8080")
		for _, other := range labs[i+1:] {
			if conn, err := other.Dial(t.Context(), "c2/worker", "10.1.0.2:8080"); err == nil {
				conn.Close()
				t.Errorf("lab %s hears lab %s", other.Name, lab.Name)
			}
		}
	}
	if err := labs[0].Down(); err != nil {
		t.Fatal(err)
	}
	for _, lab := range labs[1:] {
		if err := lab.Check(t.Context()); err != nil {
			t.Errorf("after the first went down: %v", err)
		}
	}
}

func awaitDial(t *testing.T, lab *host.Lab, node topology.Ref, address string) {
	t.Helper()
	for range 500 {
		if conn, err := lab.Dial(t.Context(), node, address); err == nil {
			conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", address)
}

func TestUpOfALabThatIsUp(t *testing.T) {
	lab := up(t, "twice", square())
	set(t, lab, host.Link{From: "c1", To: "c2", Does: delay(2)})
	_, err := host.Up(t.Context(), square(), host.Options{Name: lab.Name, Agent: agent, Backend: "auto"})
	if !errors.Is(err, host.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	if err := lab.Check(t.Context()); err != nil {
		t.Error(err)
	}
	again, err := host.Open(lab.Name)
	if err != nil || len(again.Links) != 1 {
		t.Errorf("the lab that was up has links %v, %v", again.Links, err)
	}
}

// traces are files, control groups and processes that bear the lab's name.
func traces(t *testing.T, name string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/run/skerry/" + name + "*", "/sys/fs/cgroup/skerry/" + name, "/sys/fs/cgroup/*/skerry/" + name} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range groups {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "/skerry/"+name) {
			found = append(found, file)
		}
	}
	return found
}

func TestUpThatFailsLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces are made")
	}
	unknown := square()
	unknown.Congestion = "nonesuch"
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name, want string
		ctx        context.Context
		topology   topology.Topology
		agent      string
		backend    string
	}{
		{"no-agent", "/nowhere/skerry-agent", t.Context(), square(), "/nowhere/skerry-agent", "auto"},
		{"wrong-agent", "enter node", t.Context(), square(), "/bin/true", "auto"},
		{"congestion", `congestion control "nonesuch"`, t.Context(), unknown, agent, "auto"},
		{"backend", `no back end "nonesuch"`, t.Context(), square(), agent, "nonesuch"},
		{"cancelled", "context canceled", cancelled, square(), agent, "auto"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			name := labName(c.name)
			lab, err := host.Up(c.ctx, c.topology, host.Options{Name: name, Agent: c.agent, Backend: c.backend})
			if err == nil {
				_ = lab.Down()
				t.Fatal("the lab is up")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
			if left := traces(t, name); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestNamesOfLabs(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "A", "a.lock", "-a", strings.Repeat("a", 64)} {
		if _, err := host.Up(t.Context(), square(), host.Options{Name: name, Agent: agent}); !errors.Is(err, host.ErrName) {
			t.Errorf("up %q: got %v, want ErrName", name, err)
		}
		if _, err := host.Open(name); !errors.Is(err, host.ErrName) {
			t.Errorf("open %q: got %v, want ErrName", name, err)
		}
	}
}

func TestDownTwice(t *testing.T) {
	lab := up(t, "down", square())
	if err := lab.Down(); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, lab.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := lab.Down(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if _, err := host.Open(lab.Name); !errors.Is(err, host.ErrNoLab) {
		t.Errorf("got %v, want ErrNoLab", err)
	}
}

// opener has this test program, started once more, open a lab of its parent.
const opener = "SKERRY_TEST_OPEN"

func TestOpenFromAnotherProcess(t *testing.T) {
	if name := os.Getenv(opener); name != "" {
		lab, err := host.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := lab.SetLinks(t.Context(), []host.Link{{From: "c1", To: "c2", Does: delay(3)}}, 1); err != nil {
			t.Fatal(err)
		}
		fmt.Print(mustSh(t, lab, "c2/head", "hostname"))
		return
	}
	lab := up(t, "open", square())
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenFromAnotherProcess$")
	cmd.Env = append(os.Environ(), opener+"="+lab.Name)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "c2-head\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	status, err := lab.LinkStatus(t.Context())
	if _, ok := status.Counters["c1>c2"]; err != nil || !ok {
		t.Errorf("the other process's link is not in force: %+v, %v", status, err)
	}
}

func TestCleanLeavesLabsThatAreUp(t *testing.T) {
	lab := up(t, "kept", square())
	dead := up(t, "dead", square())
	pid := dead.Nodes["c2/head"].Pid
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The process ends asynchronously; another test's Clean may be the first.
	for range 500 {
		names, err := host.Clean(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names, lab.Name) {
			t.Fatal("a lab that is up was removed")
		}
		if len(traces(t, dead.Name)) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left := traces(t, dead.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := lab.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// The kernel, not the lab, says what a socket uses.
func TestCongestionControlInForce(t *testing.T) {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range strings.Fields(string(available)) {
		t.Run(want, func(t *testing.T) {
			chosen := square()
			chosen.Congestion = want
			lab := up(t, want, chosen)
			p, err := lab.Start(host.Command{
				Node: "c1/worker", Name: "service", Args: []string{agent, "serve", "hello-world", "--listen", "10.1.0.2:8080"},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = p.Stop(0) })
			for _, from := range []topology.Ref{"c2/worker", "c1/head"} {
				awaitDial(t, lab, from, "10.1.0.2:8080")
				conn, err := lab.Dial(t.Context(), from, "10.1.0.2:8080")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				out := mustSh(t, lab, from, "ss -tniH state established dst 10.1.0.2:8080")
				if !regexp.MustCompile(`(?m)^\s+` + want + ` `).MatchString(out) {
					t.Errorf("a socket of %s:\n%s", from, out)
				}
			}
		})
	}
}

func TestStopAccountsAndEndsGrandchildren(t *testing.T) {
	lab := up(t, "stop", square())
	note, worked := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "worked")
	script := `trap '' TERM
(trap '' TERM; exec setsid sleep 1000) & echo $! > ` + note + `
i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done
head -c 20000000 /dev/zero | tail -c 20000000 | wc -c; : > ` + worked + `; wait`
	var out bytes.Buffer
	p, err := lab.Start(host.Command{Node: "c1/head", Name: "greedy", Args: []string{"/bin/sh", "-c", script}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(worked); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the program did not work")
		}
	}
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	use, err := p.Stop(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	const least, most, memory = 10 * time.Millisecond, 20 * time.Second, 20_000_000
	if use.Name != "greedy" || use.Node != "c1/head" || use.CPU < least || use.CPU > most || use.MemoryPeak < memory {
		t.Errorf("accounted %+v", use)
	}
	// Its new parent may leave it a zombie, which has no command line.
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(line) > 0 {
		t.Errorf("the grandchild %d lives: %q", pid, line)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	lab := up(t, "context", square())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := lab.Run(ctx, host.Command{Node: "c1/head", Name: "long", Args: []string{"sleep", "1000"}})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

// A step that leaves a child with its output open must not hang.
func TestRunWithAChildThatStays(t *testing.T) {
	lab := up(t, "child", square())
	out, err := sh(t, lab, "c1/head", "echo before; sleep 1000 &")
	if !errors.Is(err, exec.ErrWaitDelay) || out != "before\n" {
		t.Errorf("got %q, %v; want ErrWaitDelay", out, err)
	}
}

// A node that has another folder in the place of the working directory says so.
func TestRunWithoutItsWorkingDirectory(t *testing.T) {
	lab := up(t, "folder", square())
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	mustSh(t, lab, "c1/head", "mount -t tmpfs none "+outer)
	run := func(node topology.Ref, name string) error {
		return lab.Run(t.Context(), host.Command{Node: node, Name: name, Args: []string{"/bin/true"}, Dir: inner})
	}
	if err := run("c1/head", "hidden"); !errors.Is(err, host.ErrNoDir) || !strings.Contains(err.Error(), inner) {
		t.Errorf("where it is hidden: %v", err)
	}
	if err := run("c1/worker", "seen"); err != nil {
		t.Errorf("where it is not: %v", err)
	}
}
