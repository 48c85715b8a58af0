package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// directions reads "c1>c2=5ms c2>c1=cut": a fault or links, as their tests write
// them.
func directions(t *testing.T, text string) (links []Link) {
	t.Helper()
	for _, item := range strings.Fields(text) {
		name, does, _ := strings.Cut(item, "=")
		from, to, _ := strings.Cut(name, ">")
		l := Link{From: topology.Ref(from), To: topology.Ref(to)}
		if does == "cut" {
			l = CutLink(l).Links[0]
		} else if err := l.Does.Delay.Set(does); err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	return links
}

func text(links []Link) string {
	var items []string
	for _, l := range links {
		does := l.Does.Delay.String()
		if l.Does.Loss == 1 {
			does = "cut"
		}
		items = append(items, l.Name()+"="+does)
	}
	return strings.Join(items, " ")
}

func TestFaultsTakeThePlaceOfLinks(t *testing.T) {
	for _, c := range []struct {
		about, links string
		faults       []string
		want         string
	}{
		{"none", "c1>c2=5ms", nil, "c1>c2=5ms"},
		{"nobody had set it", "", []string{"c1>c2=cut c2>c1=cut"}, "c1>c2=cut c2>c1=cut"},
		{"one way", "c1>c2=5ms c2>c1=5ms", []string{"c2>c1=cut"}, "c1>c2=5ms c2>c1=cut"},
		{"order stays, for the seeds", "c1>c3=1ms c1>c2=5ms c2>c3=2ms", []string{"c1>c2=cut c4>c1=cut"}, "c1>c3=1ms c1>c2=cut c2>c3=2ms c4>c1=cut"},
		{"clusters have their nodes with them", "c1/a>c2/b=5ms c1/a>c3/b=5ms c2/b>c1/a=5ms", []string{"c1>c2=cut"}, "c1/a>c2/b=cut c1/a>c3/b=5ms c2/b>c1/a=5ms c1>c2=cut"},
		{"nodes leave their clusters alone", "c1>c2=5ms", []string{"c1/a>c2/b=cut"}, "c1>c2=5ms c1/a>c2/b=cut"},
		{"the later one counts", "c1>c2=5ms", []string{"c1>c2=cut", "c1>c2=9ms"}, "c1>c2=9ms"},
		{"a later one of clusters covers an earlier one of nodes", "", []string{"c1/a>c2/b=9ms", "c1>c2=cut"}, "c1/a>c2/b=cut c1>c2=cut"},
		{"a later one of nodes stands out", "", []string{"c1>c2=cut", "c1/a>c2/b=9ms"}, "c1>c2=cut c1/a>c2/b=9ms"},
	} {
		var faults []Fault
		for i, f := range c.faults {
			faults = append(faults, Fault{ID: i + 1, Kind: Degrade, Links: directions(t, f)})
		}
		links := directions(t, c.links)
		if got := text(effective(links, faults)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.about, got, c.want)
		}
		if got := text(links); got != c.links {
			t.Errorf("%s: the links that were set are now %s", c.about, got)
		}
	}
}

// A degradation brings all that the link does: nothing stays of what was set.
func TestDegradeReplacesAll(t *testing.T) {
	set := Link{From: "c1/a", To: "c2/b", Unit: impair.UnitSuperpacket, Does: impair.Impairment{Delay: 5e6, Loss: 0.1}}
	does := impair.Impairment{Rate: quantity.Rate(1e6)}
	got := effective([]Link{set}, []Fault{{Kind: Degrade, Links: []Link{{From: "c1", To: "c2", Does: does}}}})
	if got[0].Name() != set.Name() || got[0].Does != does || got[0].Unit != "" {
		t.Errorf("in force is %+v", got[0])
	}
}

// A fault elsewhere, or its end, does not have a link begin its losses anew. Without
// faults a link has the seed that it was given.
func TestFaultsLeadToOtherSeeds(t *testing.T) {
	l := &Lab{state: state{Topology: topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}, {Name: "c2", Nodes: []string{"head"}}, {Name: "c3", Nodes: []string{"head"}}},
	}}}
	links := directions(t, "c1>c2=5ms c2>c1=5ms")
	cut := Fault{Kind: Cut, Links: directions(t, "c1>c3=cut")}
	seen := map[uint64]string{}
	const seed = 42
	check := func(when string) {
		t.Helper()
		all, err := l.directions(links, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all[:len(links)] {
			if before, known := seen[d.Seed]; known {
				t.Errorf("%s: %s has the seed that was that of %s", when, d.Name, before)
			}
			seen[d.Seed] = d.Name + " " + when
		}
	}
	check("before any fault")
	if seen[seed] == "" || seen[seed+1] == "" {
		t.Errorf("seeds before any fault: %v", seen)
	}
	for _, turn := range []struct{ made, standing int }{{1, 1}, {1, 0}, {2, 1}, {3, 2}, {3, 1}, {3, 0}, {4, 1}, {4, 0}} {
		l.Made, l.Faults = turn.made, slices.Repeat([]Fault{cut}, turn.standing)
		check(fmt.Sprintf("with %d of %d faults", turn.standing, turn.made))
	}
}
