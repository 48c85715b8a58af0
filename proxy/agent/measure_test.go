package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/changes"
	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/reports"
	"skerry.dev/skerry/proxy/snapshot"
	"skerry.dev/skerry/proxy/usage"
)

// Where nobody calls anybody a report a second is sent, by which round trips are known.
func TestQuiet(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24"}, nil)
	table := dispatch.NewTable("n1", func() time.Duration { return 0 })
	link, err := reports.Listen(netip.MustParseAddrPort("127.0.0.1:0"), reports.NewBook("n1", 1), func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = link.Close() }()
	link.SetKeys([][]byte{make([]byte, 32)})
	link.SetPeers(map[string]netip.AddrPort{"n2": netip.MustParseAddrPort(conntest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return said }))})
	a := &agent{table: table, link: link, metrics: newMetrics()}
	const seconds = 3
	for range seconds * int(time.Second/reports.Every) {
		a.measure()
	}
	if sent := link.Counts().Sent; sent != seconds {
		t.Errorf("%d reports in %d s", sent, seconds)
	}
}

// Reports are believed by the keys that the folder has, also when another is put there, and by
// those of before while it has nothing that would do.
func TestKeysChange(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, key []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen := func(node string, keys ...[]byte) *reports.Link {
		link, err := reports.Listen(netip.MustParseAddrPort("127.0.0.1:0"), reports.NewBook(node, 1), func() time.Duration { return time.Second })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		link.SetKeys(keys)
		return link
	}
	first, second := make([]byte, reports.KeyLeast), bytes.Repeat([]byte{1}, reports.KeyLeast)
	write("a", first)
	since, said := changes.Now(folder), make(lines, 100)
	a := &agent{Config: Config{Keys: folder}, link: listen("n1", first), log: slog.New(slog.NewTextHandler(said, nil))}
	peer := listen("n2", second)
	peer.SetPeers(map[string]netip.AddrPort{"n1": a.link.Address()})
	forged := func() bool {
		before := a.link.Counts()
		conntest.Await(t, "a report", func() bool {
			peer.Report(nil)
			a.link.Hear()
			return a.link.Counts() != before
		})
		return a.link.Counts().Forged > before.Forged
	}
	if !forged() {
		t.Fatal("a report by an unknown key was believed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		a.watchKeys(ctx, since, time.Millisecond)
		close(ended)
	}()
	write("b", second)
	conntest.Await(t, "the new key", func() bool { return !forged() })
	write("c", []byte("short"))
	for line := range said {
		if strings.Contains(line, "the keys stay as they were") {
			break
		}
	}
	if forged() {
		t.Error("by keys that will not do, those of before are gone")
	}
	cancel()
	<-ended
}

// lines is what a log has said.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// What is sent to a node is said while something is under way there, and for a second after;
// then once a second.
func TestSaysWhatChanges(t *testing.T) {
	a := &agent{spoken: spoken{sent: map[snapshot.Key]map[string]flown{}}}
	say := func(ticks, rounds int, flights map[string]dispatch.Flight) (said map[string]int) {
		said = map[string]int{}
		for range ticks {
			a.nextTick(rounds)
			for _, f := range a.report(dispatch.Flights{ByNode: flights}).Flights {
				said[f.Node]++
			}
		}
		return said
	}
	for i, c := range []struct {
		flights map[string]dispatch.Flight
		want    map[string]int
	}{
		{map[string]dispatch.Flight{"n1": {InFlight: 1}}, map[string]int{"n1": 100}},
		{map[string]dispatch.Flight{"n1": {Done: 1}, "n2": {InFlight: 0.1}}, map[string]int{"n1": 10 + 9, "n2": 100}},
		{map[string]dispatch.Flight{"n1": {Done: 1}, "n2": {Done: 1}}, map[string]int{"n1": 10, "n2": 10 + 9}},
		{map[string]dispatch.Flight{"n1": {Done: 1}, "n2": {Done: 1}}, map[string]int{"n1": 10, "n2": 10}},
		{map[string]dispatch.Flight{"n1": {Done: 2}}, map[string]int{"n1": 10 + 9}},
	} {
		if said := say(10*idleTicks, 1, c.flights); !maps.Equal(said, c.want) {
			t.Errorf("turn %d: %v, not %v", i, said, c.want)
		}
	}
	// With a thousand peers it takes ten reports for all of them to hear.
	if said := say(10*10*idleTicks, 10, map[string]dispatch.Flight{"n3": {Done: 1}}); said["n3"] != 10*(10+9) {
		t.Errorf("of a thousand peers %v", said)
	}
}

// Pods have the cores that others leave of their node, though what they use counts by their
// limits; and some, whatever others use.
func TestCoresThatOthersLeave(t *testing.T) {
	const uid = "3f1e2d3c-0b1a-4c5d-8e9f-001122334455"
	root := t.TempDir()
	set := func(file string, of time.Duration) {
		t.Helper()
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendln(nil, of.Microseconds()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	work := func(pod, all time.Duration) {
		t.Helper()
		set("cpuacct/pods/pod"+uid+"/cpuacct.usage", pod*1000) // in ns
		set("cpuacct/pods/cpuacct.usage", all*1000)
	}
	set("cpu/pods/cpu.cfs_quota_us", 50*time.Millisecond)
	set("cpu/pods/cpu.cfs_period_us", 100*time.Millisecond)
	work(0, 0)
	groups, err := usage.New(root, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := podUse{groups: groups, last: map[snapshot.Key]reported{}}
	var pod, all, now time.Duration
	after := func(seconds int, mine, others float64) reports.Service {
		t.Helper()
		s := reports.Service{}
		for range seconds * 10 {
			now += lately / 10
			pod += time.Duration(mine * float64(lately) / 10)
			all += time.Duration((mine + others) * float64(lately) / 10)
			work(pod, all)
			s = reports.Service{}
			p.add(&s, []string{uid}, now)
		}
		return s
	}
	near := func(a, b float64) bool { return a > b-0.01 && a < b+0.01 }
	if s := after(10, 0.1, 0); !near(s.Cores, 0.5) || !near(s.CPU, 0.2) {
		t.Errorf("alone: %+v", s)
	}
	if s := after(10, 0.1, 0.2); !near(s.Cores, 0.3) || !near(s.CPU, 1./3) {
		t.Errorf("beside others: %+v", s)
	}
	if s := after(10, 0.3, 0.2); !near(s.Cores, 0.3) || !near(s.CPU, 1) {
		t.Errorf("with all that others leave: %+v", s)
	}
	if s := after(10, 0.1, 0.4); !near(s.Cores, 0.125) {
		t.Errorf("beside others that leave next to nothing: %+v", s)
	}
}
