package experiments_test

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skerry.dev/skerry/experiments"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// table is a table of a paper as printed: its cells by scenario and column.
type table struct {
	scenarios []string
	cells     map[string]map[string]float64
}

func readTable(t *testing.T, name string) table {
	t.Helper()
	f, err := os.Open("data/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := table{cells: map[string]map[string]float64{}}
	for _, row := range rows[1:] {
		cells := map[string]float64{}
		for i, text := range row[1:] {
			if cells[rows[0][i+1]], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		all.scenarios = append(all.scenarios, row[0])
		all.cells[row[0]] = cells
	}
	if len(all.scenarios) != 9 {
		t.Fatalf("%s has %d scenarios, the paper 9", name, len(all.scenarios))
	}
	return all
}

// slope of a column over the scenarios' labels, in ms per ms, by least squares.
func (t table) slope(family, column string) float64 {
	var xs, ys measure.Sorted
	for _, s := range t.scenarios {
		if label, of := strings.CutPrefix(s, family); of || s == "local" {
			x, _ := strconv.ParseFloat(label, 64) // local is at 0
			xs, ys = append(xs, x), append(ys, t.cells[s][column])
		}
	}
	var products, squares float64
	for i, x := range xs {
		products += (x - xs.Mean()) * (ys[i] - ys.Mean())
		squares += (x - xs.Mean()) * (x - xs.Mean())
	}
	return products / squares
}

// TestSlopes recomputes what the claims of CRT-T3 rest on: the round trips that a
// payload took by the table as printed. Those of the edge are near half of the
// cloud's at every size, as if one of the two stages had not acted.
func TestSlopes(t *testing.T) {
	printed := readTable(t, "crt-table3.csv")
	for _, c := range []struct {
		size        string
		cloud, edge float64
	}{{"1kb", 1.04, 0.58}, {"10kb", 1.92, 0.95}, {"100kb", 4.67, 1.95}, {"1mb", 15.0, 6.24}} {
		cloud, edge := printed.slope("cloud", "direct_"+c.size+"_ms"), printed.slope("edge", "direct_"+c.size+"_ms")
		// To the last digit that is told.
		if math.Abs(cloud/c.cloud-1) > 0.006 || math.Abs(edge/c.edge-1) > 0.01 {
			t.Errorf("%s grows by %.3f (cloud) and %.3f (edge) ms per ms, want %.2f and %.2f", c.size, cloud, edge, c.cloud, c.edge)
		}
		if half := edge / cloud; half < 0.4 || half > 0.57 {
			t.Errorf("%s: the edge's slope is %.2f of the cloud's", c.size, half)
		}
		ofEdge20, ofCloud10 := printed.cells["edge20"]["direct_"+c.size+"_ms"], printed.cells["cloud10"]["direct_"+c.size+"_ms"]
		if ratio := ofEdge20 / ofCloud10; ratio < 0.95 || ratio > 1.05 {
			t.Errorf("%s: edge20 is %.2f of cloud10", c.size, ratio)
		}
	}
}

// TestRatios recomputes the range of ClusterLink's response time over the direct
// one, by size, as printed: the extremes at 1 and 10 KB are the outliers that no
// claim asserts.
func TestRatios(t *testing.T) {
	printed := readTable(t, "crt-table3.csv")
	for _, c := range []struct{ size, want, lowest, highest string }{
		{"1kb", "0.95 to 2.11", "cloud5", "cloud30"},
		{"10kb", "1.29 to 2.23", "cloud5", "edge20"},
		{"100kb", "1.02 to 1.30", "local", "cloud30"},
		{"1mb", "1.02 to 1.23", "edge10", "edge30"},
	} {
		ratio := func(scenario string) float64 {
			row := printed.cells[scenario]
			return row["clusterlink_"+c.size+"_ms"] / row["direct_"+c.size+"_ms"]
		}
		order := slices.SortedFunc(slices.Values(printed.scenarios), func(a, b string) int {
			return int(math.Copysign(1, ratio(a)-ratio(b)))
		})
		lowest, highest := order[0], order[len(order)-1]
		if got := fmt.Sprintf("%.2f to %.2f", ratio(lowest), ratio(highest)); got != c.want || lowest != c.lowest || highest != c.highest {
			t.Errorf("%s: %s, at %s and %s; want %s, at %s and %s", c.size, got, lowest, highest, c.want, c.lowest, c.highest)
		}
	}
}

// TestScenariosAsPublished holds the experiments of CRT to its table 2: between
// the clusters the overlay's stage and then the physical one, inside of c1 the
// physical one alone.
func TestScenariosAsPublished(t *testing.T) {
	printed := readTable(t, "crt-table2.csv")
	stage := func(scenario, of string) impair.Impairment {
		row := printed.cells[scenario]
		return impair.Impairment{
			Delay: ms(row[of+"_delay_ms"]), Jitter: ms(row[of+"_jitter_ms"]),
			Loss: quantity.Fraction(row[of+"_loss_percent"] / 100),
		}
	}
	for file, whole := range map[string]bool{
		"crt-direct-f3.yaml": true, "crt-direct-full.yaml": true, "crt-direct-t3-cloud.yaml": false, "crt-direct-t3-edge.yaml": false,
		"crt-clusterlink-f3.yaml": false, "crt-clusterlink-t3.yaml": false, "crt-clusterlink-full.yaml": true,
		"kubernetes-crt.yaml": false,
	} {
		e := read(t, file)
		found := 0
		for _, name := range printed.scenarios {
			i := slices.IndexFunc(e.Scenarios, func(s experiment.Scenario) bool { return s.Name == name })
			if i < 0 {
				continue
			}
			found++
			if unit := e.Scenarios[i].Unit; unit != impair.UnitSuperpacket {
				t.Errorf("%s: %s counts by %s, not as the paper's netem did", file, name, unit)
			}
			way := e.Scenarios[i].HopMap(pathOf(t, e, "ingress"))
			overlay, physical := stage(name, "ovl"), stage(name, "phy")
			want := [][]impair.Impairment{{overlay, physical}, {physical}}
			for hop, h := range way.Hops {
				if got, want := told(h.Link), told(want[hop]); got != want {
					t.Errorf("%s: in %s, hop %d meets %s, want %s", file, name, hop+1, got, want)
				}
			}
		}
		if found == 0 || whole && found < len(printed.scenarios) {
			t.Errorf("%s has %d of the paper's %d scenarios", file, found, len(printed.scenarios))
		}
	}
}

// TestSitesAsPublished holds the experiments of INL to its figures: the label is
// the delay of every hop, one at a single site and two at several; a request that
// the head serves itself has one in any case.
func TestSitesAsPublished(t *testing.T) {
	files, err := fs.Glob(experiments.FS, "inl-*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range append(files, "kubernetes-inl.yaml", "kubernetes-inl-scaled.yaml") {
		e := read(t, file)
		for _, s := range e.Scenarios {
			site, label, _ := strings.Cut(s.Name, "-")
			delay, err := strconv.ParseFloat(strings.ReplaceAll(label, "-", "."), 64)
			if err != nil {
				t.Fatalf("%s: %s has no label", file, s.Name)
			}
			hops := map[string]float64{"single": 1, "multi": 2}[site]
			if got := s.RTT(s.HopMap(pathOf(t, e, "ingress"))); got != ms(2*hops*delay).Std() || hops == 0 {
				t.Errorf("%s: a round trip in %s takes %s", file, s.Name, got)
			}
			for _, replica := range e.Topology.Replicas {
				path := append(pathOf(t, e, "ingress")[:2], replica)
				if replica == "c1/head" {
					hops = 1
				}
				if got := s.RTT(s.HopMap(path)); got != ms(2*hops*delay).Std() {
					t.Errorf("%s: a round trip to %s in %s takes %s", file, replica, s.Name, got)
				}
			}
		}
	}
}

// pathOf is the way of a request through a system that is shipped.
func pathOf(t *testing.T, e *experiment.Experiment, name string) []topology.Ref {
	t.Helper()
	stack, err := system.Load(systems.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := system.ValuesFor(&e.Topology, "/dir", 1)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Path(values)
}

// told prints what the stages that do anything do.
func told(stages []impair.Impairment) string {
	var all []string
	for _, s := range stages {
		if s.Delay > 0 {
			all = append(all, fmt.Sprintf("%s ±%s %s", s.Delay, s.Jitter, s.Loss))
		}
	}
	return fmt.Sprint(all)
}

func ms(v float64) quantity.Duration { return quantity.Duration(math.Round(v * 1e6)) }

// read reads an experiment that is shipped.
func read(t *testing.T, file string) *experiment.Experiment {
	t.Helper()
	data, err := fs.ReadFile(experiments.FS, file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Read(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
