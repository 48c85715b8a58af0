package netem

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
)

// Whether this kernel has netem or not, Probe says so plainly and leaves
// nothing; test/guest has a kernel that surely has it.
func TestProbe(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	before := count(t)
	err := Probe()
	var unsupported *UnsupportedError
	switch {
	case err == nil:
	case !errors.As(err, &unsupported):
		t.Errorf("error %v, want an UnsupportedError or none", err)
	case !strings.Contains(err.Error(), "module sch_"+unsupported.Qdisc) || !strings.Contains(err.Error(), "userspace"):
		t.Errorf("error %q, want the module and the fallback in it", err)
	}
	if after := count(t); after != before {
		t.Errorf("%d qdiscs before, %d after", before, after)
	}
}

// A refused order leaves what is in force: this back end cannot do anything, so
// it would panic if it began to.
func TestRefusedOrderChangesNothing(t *testing.T) {
	now := placed{tree: tree{out: "lo"}}
	for name, refused := range map[string]impair.Direction{
		"replays no traces":   {Name: "a", Match: impair.Match{Out: "lo"}, Impairment: impair.Impairment{Trace: "lte"}},
		"find interface none": {Name: "a", Match: impair.Match{Out: "none"}, Impairment: impair.Impairment{Delay: 1e6}},
		"read distribution":   {Name: "a", Match: impair.Match{Out: "lo"}, Impairment: impair.Impairment{Distribution: "./none"}},
	} {
		b := &Backend{places: []placed{now}, ruled: []classify.Rule{{Class: 1}}}
		if err := b.Set([]impair.Direction{refused}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
		if len(b.places) != 1 || len(b.ruled) != 1 {
			t.Errorf("%s: in force are %d trees and %d rules", name, len(b.places), len(b.ruled))
		}
	}
}

func count(t *testing.T) int {
	t.Helper()
	qdiscs, err := netlink.QdiscList(nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(qdiscs)
}

func TestUnsupportedErrorNamesTheFallback(t *testing.T) {
	err := &UnsupportedError{Qdisc: "netem", Err: os.ErrNotExist}
	const want = "netem links need a netem qdisc, which this kernel does not make (module sch_netem, Linux 4.15 or newer; the link back end userspace does without): file does not exist"
	if err.Error() != want || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
