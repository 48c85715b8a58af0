package host_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// What a node sends is taken from it by a thread of the kernel with the emulator's priority:
// also after its interfaces were down.
func TestHandOff(t *testing.T) {
	lab := up(t, "handoff", square())
	before := threadsOfPort("c1n2")
	if err := lab.HandOff("c1/worker"); err != nil {
		t.Fatal(err)
	}
	taken := func() int {
		t.Helper()
		now := slices.DeleteFunc(threadsOfPort("c1n2"), func(id int) bool { return slices.Contains(before, id) })
		if len(now) != 1 {
			t.Fatalf("%d threads of the kernel take what c1/worker sends, want 1 (before there were %v)", len(now), before)
		}
		if is, err := unix.SchedGetAttr(now[0], 0); err != nil || is.Policy != unix.SCHED_FIFO {
			t.Errorf("the thread is scheduled by %+v, %v, want SCHED_FIFO", is, err)
		}
		return now[0]
	}
	const packets = 20
	works := func(id int) {
		t.Helper()
		woken := wakesOf(t, id)
		mustSh(t, lab, "c1/worker", "ping -c "+strconv.Itoa(packets)+" -i 0.01 -W 2 c1-head")
		if got := wakesOf(t, id) - woken; got < packets {
			t.Errorf("the thread woke %d times, want at least %d", got, packets)
		}
	}
	works(taken())
	cut := inject(t, lab, host.Fault{Kind: host.Kill, Node: "c1/worker"})
	if err := lab.Undo(t.Context(), cut.ID); err != nil {
		t.Fatal(err)
	}
	works(taken())
	if err := lab.HandOff("c1/nobody"); err == nil {
		t.Error("a node that is not there hands off")
	}
}

// threadsOfPort are those of the kernel that take what comes to a port of that name.
func threadsOfPort(port string) (ids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if id, bad := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && bad == nil && strings.HasPrefix(string(comm), "napi/"+port+"-") {
			ids = append(ids, id)
		}
	}
	return ids
}

var wakes = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s*(\d+)$`)

func wakesOf(t *testing.T, id int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "status"))
	if err != nil {
		t.Fatal(err)
	}
	match := wakes.FindSubmatch(text)
	if match == nil {
		t.Fatalf("thread %d says\n%s", id, text)
	}
	n, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
