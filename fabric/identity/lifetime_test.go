package identity_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
)

// A gateway stands on its own certificate, on its cluster's and on the fabric's: of those
// above it the first to expire counts.
func TestLifetimes(t *testing.T) {
	i, err := identity.Load(identitytest.New(t, "c1")["c1"])
	if err != nil {
		t.Fatal(err)
	}
	all := i.Lifetimes()
	if len(all) != 2 || all[0].Of != identity.OfLeaf || all[1].Of != identity.OfAuthority {
		t.Fatalf("got %+v", all)
	}
	begin, end := i.Validity()
	if !all[0].Begin.Equal(begin) || !all[0].End.Equal(end) {
		t.Errorf("got %+v", all[0])
	}
	const day = 24 * time.Hour
	if lasts := all[1].End.Sub(all[0].Begin); lasts < 300*day || lasts > 400*day {
		t.Errorf("the authority's lasts %s: that of a cluster lasts a year, that of the fabric ten", lasts)
	}
}

func TestDue(t *testing.T) {
	begin := time.Unix(0, 0)
	l := identity.Lifetime{Begin: begin, End: begin.Add(300 * time.Hour)}
	for after, want := range map[time.Duration]bool{0: false, 200 * time.Hour: false, 203 * time.Hour: false, 205 * time.Hour: true, 400 * time.Hour: true} {
		if got := l.Due(begin.Add(after)); got != want {
			t.Errorf("after %s: %v", after, got)
		}
	}
}
