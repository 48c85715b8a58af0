package host_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

const serviceAt = "10.1.0.2:8080"

// serve starts the service in c1/worker.
func serve(t *testing.T, lab *host.Lab) *host.Process {
	t.Helper()
	p, err := lab.Start(host.Command{
		Node: "c1/worker", Name: "service", Args: []string{agent, "serve", "hello-world", "--listen", serviceAt},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Stop(0) })
	awaitDial(t, lab, "c2/worker", serviceAt)
	return p
}

// client is a connection from c2/worker to the service.
func client(t *testing.T, lab *host.Lab) net.Conn {
	t.Helper()
	conn, err := lab.Dial(t.Context(), "c2/worker", serviceAt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: service\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// answer waits for an answer as long as it may take.
func answer(conn net.Conn, wait time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return err
}

const (
	patience = 10 * time.Second
	// instant is far more than an answer takes that is not held up.
	instant = 300 * time.Millisecond
)

func inject(t *testing.T, lab *host.Lab, f host.Fault) host.Fault {
	t.Helper()
	f, err := lab.Inject(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func undo(t *testing.T, lab *host.Lab, f host.Fault) {
	t.Helper()
	if err := lab.Undo(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
}

// reaches says whether one ping gets an answer.
func reaches(t *testing.T, lab *host.Lab, from topology.Ref, to string) bool {
	t.Helper()
	_, err := sh(t, lab, from, "ping -c 1 -W 0.3 "+to)
	return err == nil
}

func TestCutLosesAllUntilUndone(t *testing.T) {
	lab := up(t, "cut", square())
	set(t, lab, both("c1", "c2", delay(1))...)
	set(t, lab, append(lab.Links, host.Link{From: "c1/head", To: "c2/head", Does: delay(2)})...)
	serve(t, lab)
	conn := client(t, lab)
	cut := inject(t, lab, host.CutLink(host.Link{From: "c1", To: "c2"}, host.Link{From: "c2", To: "c1"}))
	ask(t, conn)
	if err := answer(conn, instant); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over a link that is cut: %v", err)
	}
	for _, pair := range [][2]string{{"c1/worker", "c2-worker"}, {"c1/head", "c2-head"}, {"c2/head", "c1-worker"}} {
		if reaches(t, lab, topology.Ref(pair[0]), pair[1]) {
			t.Errorf("%s reaches %s", pair[0], pair[1])
		}
	}
	if !reaches(t, lab, "c1/worker", "c1-head") || !reaches(t, lab, "c1/worker", "172.31.2.2") {
		t.Error("what is beside the link is cut as well")
	}
	// Whoever sets links meanwhile sets those after the fault.
	set(t, lab, both("c1", "c2", delay(10))...)
	if reaches(t, lab, "c1/worker", "c2-worker") {
		t.Error("setting links has undone the cut")
	}
	undo(t, lab, cut)
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
	if err := answer(conn, patience); err != nil {
		t.Errorf("the request does not come through after the cut: %v", err)
	}
	if err := lab.Undo(t.Context(), cut.ID); !errors.Is(err, host.ErrNoFault) {
		t.Errorf("undone twice: %v", err)
	}
}

func TestCutOfOneWay(t *testing.T) {
	lab := up(t, "one-way", square())
	inject(t, lab, host.CutLink(host.Link{From: "c2", To: "c1"}))
	if reaches(t, lab, "c1/worker", "c2-worker") {
		t.Error("an answer came back")
	}
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if back := status.Counters["c2>c1"]; len(status.Counters) != 1 || back.Lost != 1 || back.Packets != 1 {
		t.Errorf("counted %+v, want the one answer lost on its way back", status.Counters)
	}
}

func TestFreezeStallsUntilUndone(t *testing.T) {
	lab := up(t, "freeze", square())
	serve(t, lab)
	conn := client(t, lab)
	ask(t, conn)
	if err := answer(conn, patience); err != nil {
		t.Fatal(err)
	}
	frozen := inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/worker", Process: "service"})
	ask(t, conn)
	if err := answer(conn, instant); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frozen service answers: %v", err)
	}
	if !reaches(t, lab, "c2/worker", "c1-worker") {
		t.Error("the kernel of the node is frozen, too")
	}
	undo(t, lab, frozen)
	if err := answer(conn, patience); err != nil {
		t.Errorf("after the freeze: %v", err)
	}
}

// states of a program's processes, as ps tells them, a letter each.
func states(t *testing.T, lab *host.Lab, name string) string {
	t.Helper()
	running, err := lab.Running()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(running, func(r host.Running) bool { return r.Name == name })
	if i < 0 {
		return ""
	}
	text := ""
	for _, pid := range running[i].Pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		text += rest[:1]
	}
	return text
}

// start starts a shell with a child, named name.
func start(t *testing.T, lab *host.Lab, node topology.Ref, name string) *host.Process {
	t.Helper()
	p, err := lab.Start(host.Command{Node: node, Name: name, Args: []string{"/bin/sh", "-c", "sleep 1000 & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Stop(0) })
	for range 500 {
		if states(t, lab, name) == "SS" {
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not start", name)
	return nil
}

func TestFreezeOfNodesAndProcessesTogether(t *testing.T) {
	lab := up(t, "frozen", square())
	start(t, lab, "c1/head", "one")
	start(t, lab, "c1/head", "two")
	start(t, lab, "c2/head", "other")
	expect := func(when, one, two string) {
		t.Helper()
		// SIGCONT takes effect in its own time.
		for range 200 {
			if states(t, lab, "one") == one && states(t, lab, "two") == two {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := states(t, lab, "one") + " " + states(t, lab, "two"); got != one+" "+two {
			t.Errorf("%s: states %s, want %s %s", when, got, one, two)
		}
		if other := states(t, lab, "other"); other != "SS" {
			t.Errorf("%s: a process of another node is %s", when, other)
		}
	}
	node := inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/head"})
	if one := states(t, lab, "one"); one != "TT" {
		t.Errorf("right after the freeze: %s", one)
	}
	process := inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/head", Process: "one"})
	expect("both frozen", "TT", "TT")
	undo(t, lab, node)
	expect("the process still frozen", "TT", "SS")
	undo(t, lab, process)
	expect("all undone", "SS", "SS")
	// A process is known by its program, too.
	inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/head", Process: "sleep"})
	expect("by its program", "TT", "TT")
}

// The peer of a node that was killed hears nothing, not even of the end.
func TestKillOfANode(t *testing.T) {
	lab := up(t, "killed", square())
	service := serve(t, lab)
	conn := client(t, lab)
	killed := inject(t, lab, host.Fault{Kind: host.Kill, Node: "c1/worker"})
	select {
	case <-service.Done():
	case <-time.After(patience):
		t.Fatal("its service lives")
	}
	if err := answer(conn, instant); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("its peer hears of it: %v", err)
	}
	if reaches(t, lab, "c2/worker", "c1-worker") || reaches(t, lab, "c1/head", "172.31.1.2") {
		t.Error("it answers")
	}
	if err := lab.Check(t.Context()); err != nil {
		t.Errorf("the lab counts as broken, and would be cleaned away: %v", err)
	}
	undo(t, lab, killed)
	// Also for those who asked for it meanwhile, in vain.
	if !reaches(t, lab, "c2/worker", "c1-worker") || !reaches(t, lab, "c1/head", "172.31.1.2") {
		t.Error("it is not found at once")
	}
	if running, err := lab.Running(); err != nil || len(running) > 0 {
		t.Errorf("running after the fault: %v, %v", running, err)
	}
	serve(t, lab)
}

// The kernel of a process that was killed closes its connections.
func TestKillOfAProcess(t *testing.T) {
	lab := up(t, "crash", square())
	start(t, lab, "c1/worker", "beside")
	service := serve(t, lab)
	conn := client(t, lab)
	f := inject(t, lab, host.Fault{Kind: host.Kill, Node: "c1/worker", Process: "skerry-agent"})
	if f.ID != 0 || len(lab.Faults) > 0 {
		t.Errorf("it is recorded as fault %d, with nothing to undo", f.ID)
	}
	select {
	case <-service.Done():
	case <-time.After(patience):
		t.Fatal("it lives")
	}
	if err := answer(conn, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("its peer does not hear of it: %v", err)
	}
	if beside := states(t, lab, "beside"); beside != "SS" {
		t.Errorf("the process beside it is %q", beside)
	}
}

func TestDownWhateverIsWrong(t *testing.T) {
	lab := up(t, "wrong-all", square())
	set(t, lab, both("c1", "c2", delay(1))...)
	start(t, lab, "c1/head", "one")
	start(t, lab, "c2/head", "two")
	inject(t, lab, host.CutLink(host.Link{From: "c1", To: "c2"}))
	inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/head"})
	inject(t, lab, host.Fault{Kind: host.Kill, Node: "c2/head"})
	again, err := host.Open(lab.Name)
	if err != nil || len(again.Faults) != 3 {
		t.Fatalf("another terminal sees %v, %v", again, err)
	}
	if err := again.Down(); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, lab.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := lab.Undo(t.Context(), 1); !errors.Is(err, host.ErrNoLab) {
		t.Errorf("undone in a lab that is down: %v", err)
	}
}

func TestFaultsThatCannotBegin(t *testing.T) {
	lab := up(t, "refused", square())
	set(t, lab, both("c1", "c2", delay(10))...)
	inject(t, lab, host.Fault{Kind: host.Kill, Node: "c2/head"})
	for _, c := range []struct {
		f    host.Fault
		want string
	}{
		{host.Fault{Kind: host.Freeze, Node: "c1/nobody"}, `no node "c1/nobody"`},
		{host.Fault{Kind: host.Freeze, Node: "c1/head"}, "c1/head: no such process runs"},
		{host.Fault{Kind: host.Kill, Node: "c1/head", Process: "web"}, "c1/head:web: no such process runs"},
		{host.Fault{Kind: host.Kill, Node: "c2/head"}, "kill c2/head: the fault is in force already"},
		{host.CutLink(host.Link{From: "c1", To: "c1"}), "both are c1"},
		{host.Fault{Kind: host.Degrade, Links: []host.Link{{From: "c1", To: "c2", Does: delay(-1)}}}, "delay -1ms is negative"},
		{host.Fault{Kind: "melt"}, `no fault "melt"`},
	} {
		if _, err := lab.Inject(t.Context(), c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %q", c.f.Kind, c.f.Target(), err, c.want)
		}
	}
	if again, err := host.Open(lab.Name); err != nil || len(again.Faults) != 1 {
		t.Errorf("recorded are %v, %v", again.Faults, err)
	}
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
}

// Without its emulator a lab has no links to cut. That is said in a line, and the
// fault is not in force.
func TestCutWithoutAnEmulator(t *testing.T) {
	// Bound to this process, or the Clean of another test would remove it.
	lab := upWith(t, square(), host.Options{Name: labName("no-links"), Agent: agent, Backend: "auto", Bound: true})
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(status.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err = lab.LinkStatus(t.Context()); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err = lab.Inject(t.Context(), host.CutLink(host.Link{From: "c1", To: "c2"}))
	if !errors.Is(err, host.ErrSilent) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if again, err := host.Open(lab.Name); err != nil || len(again.Faults) > 0 {
		t.Errorf("recorded are %v, %v", again.Faults, err)
	}
}

// An emulator that is too late to answer may still cut the link. So the fault stays
// recorded, and undone the link carries packets again.
func TestCutByALateEmulator(t *testing.T) {
	if testing.Short() {
		t.Skip("waits as long as an order may take, 5 s")
	}
	lab := upWith(t, square(), host.Options{Name: labName("late"), Agent: agent, Backend: "auto", Bound: true})
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(status.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f, err := lab.Inject(t.Context(), host.CutLink(host.Link{From: "c1", To: "c2"}, host.Link{From: "c2", To: "c1"}))
	if !errors.Is(err, host.ErrSilent) || !strings.Contains(err.Error(), "fault 1 may be in force") {
		t.Errorf("got %v", err)
	}
	if err := unix.Kill(status.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if status, err = lab.LinkStatus(t.Context()); len(status.Counters) > 0 || err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || reaches(t, lab, "c1/worker", "c2-worker") {
		t.Fatalf("the emulator has not cut the link after all: %v", err)
	}
	again, err := host.Open(lab.Name)
	if err != nil || len(again.Faults) != 1 || again.Faults[0].ID != f.ID {
		t.Fatalf("recorded are %v, %v", again.Faults, err)
	}
	undo(t, again, f)
	if !reaches(t, lab, "c1/worker", "c2-worker") {
		t.Error("the link is still cut")
	}
}

// Faults come and go from many terminals at once, and none is forgotten.
func TestFaultsFromManyTerminals(t *testing.T) {
	const terminals = 8
	shape := topology.Topology{Service: "c1/head", Client: "c2/head"}
	for i := range terminals + 1 {
		shape.Clusters = append(shape.Clusters, topology.Cluster{Name: "c" + strconv.Itoa(i+1), Nodes: []string{"head"}})
	}
	lab := up(t, "many", shape)
	var ids [terminals]int
	var all sync.WaitGroup
	for i := range terminals {
		all.Go(func() {
			mine, err := host.Open(lab.Name)
			if err != nil {
				t.Error(err)
				return
			}
			f, err := mine.Inject(t.Context(), host.CutLink(host.Link{From: "c1", To: topology.Ref("c" + strconv.Itoa(i+2))}))
			if ids[i] = f.ID; err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := mine.Undo(t.Context(), f.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(ids[:])
	if ids[0] != 1 || ids[terminals-1] != terminals || len(slices.Compact(ids[:])) != terminals {
		t.Errorf("numbers %v", ids)
	}
	again, err := host.Open(lab.Name)
	if err != nil || len(again.Faults) != terminals/2 {
		t.Fatalf("in force are %v, %v", again.Faults, err)
	}
	status, err := lab.LinkStatus(t.Context())
	if err != nil || len(status.Counters) != terminals/2 {
		t.Errorf("the emulator has %v, %v", status.Counters, err)
	}
}
