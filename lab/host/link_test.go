package host_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/test/quiet"
)

func delay(ms int) impair.Impairment {
	return impair.Impairment{Delay: quantity.Duration(time.Duration(ms) * time.Millisecond)}
}

func set(t *testing.T, lab *host.Lab, links ...host.Link) {
	t.Helper()
	quiet.Timed(t) // who impairs a link looks how long packets take
	if err := lab.SetLinks(t.Context(), links, 1); err != nil {
		t.Fatal(err)
	}
}

// both impairs the two directions alike.
func both(a, b topology.Ref, does impair.Impairment) []host.Link {
	return []host.Link{{From: a, To: b, Does: does}, {From: b, To: a, Does: does}}
}

var roundTrips = regexp.MustCompile(`rtt min/avg/max/mdev = ([\d.]+)/`)

// rtt is the least of ten round trips: what the machine's other work adds
// is in the others.
func rtt(t *testing.T, lab *host.Lab, from topology.Ref, to string) time.Duration {
	t.Helper()
	out := mustSh(t, lab, from, "ping -c 10 -i 0.02 -W 2 "+to)
	match := roundTrips.FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("ping %s says\n%s", to, out)
	}
	ms, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// slow holds that a round trip takes what was asked for, and no path beside it
// more than it took before.
func slow(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+want/5 {
		t.Errorf("a round trip takes %s, want %s", got, want)
	}
}

func fast(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got > want/5 {
		t.Errorf("a round trip beside the link takes %s, that of the link %s", got, want)
	}
}

func TestLinkBetweenClusters(t *testing.T) {
	lab := up(t, "clusters", square())
	fast(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
	set(t, lab, both("c1", "c2", delay(10))...)
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
	slow(t, rtt(t, lab, "c2/head", "c1-head"), 20*time.Millisecond)
	fast(t, rtt(t, lab, "c1/worker", "c1-head"), 20*time.Millisecond)
	fast(t, rtt(t, lab, "c1/worker", "172.31.2.2"), 20*time.Millisecond)
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const pings = 20
	for _, name := range []string{"c1>c2", "c2>c1"} {
		if c := status.Counters[name]; c.Packets < pings || c.Packets > pings+10 || c.Lost+c.Overflowed+c.Missed > 0 {
			t.Errorf("%s: %+v after %d pings", name, c, pings)
		}
	}
}

func TestLinkBetweenNodesOfTwoClusters(t *testing.T) {
	lab := up(t, "nodes", square())
	set(t, lab, host.Link{From: "c1/worker", To: "c2/worker", Does: delay(10)})
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 10*time.Millisecond)
	for _, beside := range []struct{ from, to string }{{"c1/worker", "c2-head"}, {"c1/head", "c2-worker"}, {"c1/head", "c1-worker"}} {
		fast(t, rtt(t, lab, topology.Ref(beside.from), beside.to), 10*time.Millisecond)
	}
}

func TestLinkInsideACluster(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		t.Skip("needs br_netfilter: packets inside a cluster are bridged")
	}
	lab := up(t, "inside", square())
	set(t, lab, both("c1/head", "c1/worker", delay(10))...)
	slow(t, rtt(t, lab, "c1/worker", "c1-head"), 20*time.Millisecond)
	fast(t, rtt(t, lab, "c2/worker", "c2-head"), 20*time.Millisecond)
	fast(t, rtt(t, lab, "c1/worker", "c2-head"), 20*time.Millisecond)
}

func TestLinkThatDoesNothingCostsNothing(t *testing.T) {
	lab := up(t, "nothing", square())
	wan := fmt.Sprintf("/proc/%d/net/netfilter/nfnetlink_queue", lab.WAN.Pid)
	for _, links := range [][]host.Link{nil, both("c1", "c2", impair.Impairment{})} {
		set(t, lab, both("c1", "c2", delay(1))...)
		set(t, lab, links...)
		before := queued(t, wan)
		mustSh(t, lab, "c1/worker", "ping -c 3 -i 0.02 -W 2 c2-worker")
		if after := queued(t, wan); after != before {
			t.Errorf("links %v: %d packets were queued", links, after-before)
		}
		status, err := lab.LinkStatus(t.Context())
		if err != nil || len(status.Counters) > 0 {
			t.Errorf("links %v have counters %+v, %v", links, status.Counters, err)
		}
	}
}

// queued is how many packets the queues of a namespace have numbered so far.
func queued(t *testing.T, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0 // no nfnetlink_queue: the links are netem's
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// Fields: queue, port, waiting, mode, range, dropped, dropped, last id, 1.
		const idField = 7
		fields := strings.Fields(line)
		if len(fields) <= idField {
			t.Fatalf("%s: %q", file, line)
		}
		id, err := strconv.Atoi(fields[idField])
		if err != nil {
			t.Fatal(err)
		}
		n += id
	}
	return n
}

// Pings go on while the link changes: not one is lost, and the last are as slow
// as the last link.
func TestLinkChangesUnderTraffic(t *testing.T) {
	lab := up(t, "changes", square())
	set(t, lab, both("c1", "c2", delay(1))...)
	said := make(chan string) // unbuffered: all is read before ping has ended
	p, err := lab.Start(host.Command{
		Node: "c1/worker", Name: "ping", Args: []string{"ping", "-i", "0.01", "-c", "100", "-W", "2", "c2-worker"},
		Stdout: writer(func(text string) { said <- text }), Stderr: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Stop(0) })
	var all strings.Builder
	ended := p.Done()
	for change := 0; ended != nil; {
		select {
		case text := <-said:
			if all.WriteString(text); strings.Count(all.String(), "time=") > 20*(change+1) && change < 4 {
				change++
				set(t, lab, both("c1", "c2", delay(2+2*change))...)
			}
		case <-ended:
			ended = nil
		}
	}
	if !strings.Contains(all.String(), "100 packets transmitted, 100 received") {
		t.Errorf("ping says\n%s", all.String())
	}
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// A link whose emulator is gone must not become a perfect link.
func TestLinkWithoutItsEmulatorIsDead(t *testing.T) {
	// Bound to this process, or the Clean of another test would remove it.
	lab := upWith(t, square(), host.Options{Name: labName("dead-link"), Agent: agent, Backend: "auto", Bound: true})
	set(t, lab, both("c1", "c2", delay(1))...)
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Backend != "userspace" {
		t.Skip("needs the userspace back end: netem has no process that could end")
	}
	if err := unix.Kill(status.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended := func() bool { // one who asks as it is killed sees a connection reset
		err = lab.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "parts of the lab have ended")
	}
	for turns := 0; !ended(); turns++ {
		if turns == 500 {
			t.Fatalf("Check says %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if out, err := sh(t, lab, "c1/worker", "ping -c 3 -i 0.05 -W 1 c2-worker"); err == nil || !strings.Contains(out, "100% packet loss") {
		t.Errorf("packets still cross the link: %v\n%s", err, out)
	}
	mustSh(t, lab, "c1/worker", "ping -c 1 -W 2 c1-head")
}

func TestWrongLinks(t *testing.T) {
	lab := up(t, "wrong", square())
	set(t, lab, both("c1", "c2", delay(1))...)
	for _, c := range []struct {
		from, to topology.Ref
		does     impair.Impairment
		want     string
	}{
		{"c1", "c3", delay(1), `no cluster or node "c3"; there are c1, c2, c1/head`},
		{"c1", "c2/head", delay(1), "one of c1 and c2/head is a cluster, the other a node"},
		{"c1", "c1", delay(1), "both are c1"},
		{"c1", "c2", delay(-1), "delay -1ms is negative"},
	} {
		err := lab.SetLinks(t.Context(), []host.Link{{From: c.from, To: c.to, Does: c.does}}, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: got %v, want %q", c.from, c.to, err, c.want)
		}
	}
	if again, err := host.Open(lab.Name); err != nil || len(again.Links) != 2 {
		t.Errorf("wrong links have changed those in force: %v, %v", again.Links, err)
	}
}

// Where the emulator is apart it has a core for itself, on which nothing else of the lab runs,
// also where another process starts it.
func TestEmulatorApart(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs 2 cores")
	}
	lab := upWith(t, square(), host.Options{Name: labName("apart"), Agent: agent, Backend: "auto", Apart: true})
	again, err := host.Open(lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	status, err := lab.LinkStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const list = "awk '/^Cpus_allowed_list/ {print $2}' /proc/%s/status"
	own := mustSh(t, lab, "", fmt.Sprintf(list, strconv.Itoa(status.Pid)))
	for _, l := range []*host.Lab{lab, again} {
		others := mustSh(t, l, "c1/head", fmt.Sprintf(list, "self"))
		count := mustSh(t, l, "c1/head", "nproc")
		if regexp.MustCompile(`^[0-9]+\n$`).FindString(own) == "" || strings.HasSuffix(others, own) || count != fmt.Sprintln(runtime.NumCPU()-1) {
			t.Errorf("the emulator has the cores %q, another program %q, which are %q of %d", own, others, count, runtime.NumCPU())
		}
	}
}

// What another terminal sets while a lab is on its way up stays when that outlasts the
// process that made it, and who has opened it before does not bind it anew.
func TestReleaseKeepsWhatOthersHaveSet(t *testing.T) {
	lab := upWith(t, square(), host.Options{Name: labName("release"), Agent: agent, Backend: "auto", Bound: true})
	other, err := host.Open(lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.SetLinks(t.Context(), []host.Link{{From: "c1", To: "c2", Does: delay(3)}}, 1); err != nil {
		t.Fatal(err)
	}
	if err := lab.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Inject(t.Context(), host.CutLink(host.Link{From: "c2", To: "c1"})); err != nil {
		t.Fatal(err)
	}
	now, err := host.Open(lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	if now.Bound || len(now.Links) != 1 || len(now.Faults) != 1 {
		t.Errorf("bound %v, links %v, faults %v", now.Bound, now.Links, now.Faults)
	}
}
