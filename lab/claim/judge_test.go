package claim_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/topology"
)

func readPlanted(t testing.TB) *experiment.Experiment {
	t.Helper()
	data, err := os.ReadFile("testdata/planted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Read("planted.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// truth is the median of a cell in ns: see testdata/planted.yaml.
func truth(c experiment.Cell, rtt time.Duration) float64 {
	ms, kb := rtt.Seconds()*1000, float64(c.Size)/1000
	switch c.System {
	case "b":
		return 1.1e6 * (1 + ms + 0.02*kb)
	case "c":
		return 1e6 * (5 + 0.8*ms + 0.01*kb)
	}
	return 1e6 * (1 + ms + 0.02*kb)
}

// tail draws a factor with a median of 1 and a heavy right tail: Pareto's, of
// index 2.5.
func tail(rng *rand.Rand) float64 {
	return 1 + 0.02*(math.Pow(1-rng.Float64(), -0.4)-math.Pow(0.5, -0.4))
}

// plant draws samples of every cell. Repetitions differ by 1 %.
func plant(e *experiment.Experiment, seed uint64) []claim.Cell {
	rng := rand.New(rand.NewPCG(seed, 1))
	var cells []claim.Cell
	for _, c := range e.Cells() {
		rtt := c.Scenario.RTT(c.Scenario.HopMap([]topology.Ref{e.Topology.Client, e.Topology.Service}))
		planted := claim.Cell{Cell: c, RTT: rtt}
		var values, first [][]float64
		for range e.Repetitions {
			median := truth(c, rtt) * math.Exp(0.01*rng.NormFloat64())
			summary := measure.Summary{Requests: c.Iterations}
			var times []float64
			for range c.Iterations {
				if rng.Float64() < 0.02 {
					summary.Errors++
					continue
				}
				times = append(times, median*tail(rng))
			}
			summary.N = len(times)
			values, first = append(values, times), append(first, []float64{3 * median * tail(rng)})
			planted.Repetitions = append(planted.Repetitions, summary)
			planted.Rates = append(planted.Rates, 1e9/truth(c, rtt)*math.Exp(0.01*rng.NormFloat64()))
		}
		planted.Values, planted.First = measure.Repeat(values), measure.Repeat(first)
		cells = append(cells, planted)
	}
	return cells
}

// TestPlanted judges claims whose truth is known.
func TestPlanted(t *testing.T) {
	e := readPlanted(t)
	judgements, err := claim.Judge(e.Claims, plant(e, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]claim.Result{"true": claim.Holds, "false": claim.Fails, "open": claim.Inconclusive}
	kinds, right := map[string]int{}, 0
	for _, j := range judgements {
		truth, _, _ := strings.Cut(j.Name, "-")
		kinds[truth+" "+j.Kind]++
		if j.Result != want[truth] {
			t.Errorf("%s: %s %s: %s %s; %s", j.Name, j.Kind, j.Statement, j.Result, j.Effect, j.Why)
			continue
		}
		t.Logf("%s: %s %s: %s %s; %s", j.Name, j.Kind, j.Statement, j.Result, j.Effect, j.Why)
		right++
	}
	t.Logf("%d of %d verdicts are right", right, len(judgements))
	for _, truth := range []string{"true", "false", "open"} {
		for _, kind := range []string{"ORDER", "RATIO", "SLOPE", "CROSSING", "BOUND"} {
			if kinds[truth+" "+kind] != 2 {
				t.Errorf("%d claims of kind %s are %s, want 2", kinds[truth+" "+kind], kind, truth)
			}
		}
	}
}

// TestSameSamplesSameJudgement holds that neither the order of claims nor those
// beside one move it.
func TestSameSamplesSameJudgement(t *testing.T) {
	e := readPlanted(t)
	e.Repetitions = 3
	cells := plant(e, 1)
	all, err := claim.Judge(e.Claims[:4], cells)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		alone, err := claim.Judge(e.Claims[i:i+1], cells)
		if err != nil || alone[0] != all[i] {
			t.Errorf("alone %+v, %v\namong others %+v", alone, err, all[i])
		}
	}
}

// Of two modes, that of answers that lose nothing and that of those that do, p25 is of
// the first as long as a quarter of the answers are; the median is of either.
func TestLowerMode(t *testing.T) {
	cell := figures("edg10", "a", 10*time.Millisecond)
	const clean, lossy = 130e6, 280e6
	cell.Values = measure.Repeat([][]float64{
		{lossy, lossy, clean, clean}, {clean, clean, clean, lossy}, {lossy, lossy, lossy, clean, clean}, {clean, clean, clean, clean},
	})
	cell.Repetitions = make([]measure.Summary, 4)
	bound := experiment.Claim{Kind: "bound", Of: &experiment.Selector{System: []string{"a"}}, Range: experiment.Range{Below: "140ms"}}
	lower := bound
	lower.Metric = experiment.MetricP25
	got, err := claim.Judge([]experiment.Claim{bound, lower}, []claim.Cell{cell})
	if err != nil || got[0].Result != claim.Inconclusive || got[1].Result != claim.Holds {
		t.Errorf("the median is %s %s, p25 %s %s, %v", got[0].Result, got[0].Effect, got[1].Result, got[1].Effect, err)
	}
}

// figures is a cell whose repetitions have the medians, in ms.
func figures(scenario, system string, rtt time.Duration, medians ...float64) claim.Cell {
	var values [][]float64
	for _, m := range medians {
		values = append(values, []float64{m * 1e6})
	}
	return claim.Cell{Cell: cell(scenario, system), RTT: rtt, Values: measure.Repeat(values), First: measure.Repeat(nil)}
}

func TestWhatCannotBeJudged(t *testing.T) {
	a := experiment.Selector{System: []string{"a"}}
	b := experiment.Selector{System: []string{"b"}}
	order := experiment.Claim{Name: "n", Kind: "order", Order: []experiment.Selector{a, b}}
	some := order
	some.At = "some"
	first := order
	first.Metric = "first"
	slope := experiment.Claim{Kind: "slope", Over: "rtt", Range: experiment.Range{Above: "0"}}
	below := experiment.Claim{Kind: "bound", Range: experiment.Range{Below: "2ms"}}
	at := experiment.Claim{Kind: "bound", Range: experiment.Range{Above: "2ms"}}

	near := figures("lcl", "a", 0, 1, 1.01, 0.99)
	far := figures("lcl", "b", 0, 2, 2.01, 1.99)
	rejected, lacking := far, far
	rejected.Missing, lacking.Lacks = "rejected: steal of 3s", "no program haproxy"
	later := figures("edg10", "a", time.Millisecond, 1, 1.01, 0.99)
	reversed := figures("edg10", "b", time.Millisecond, 0.5, 0.51, 0.49)
	const nearText, farText = "lcl/a/hello-world 1 thread kept", "lcl/b/hello-world 1 thread kept"
	for name, c := range map[string]struct {
		claim  experiment.Claim
		cells  []claim.Cell
		result claim.Result
		why    string
	}{
		"all is there":         {order, []claim.Cell{near, far}, claim.Holds, nearText + " against " + farText},
		"rejected":             {order, []claim.Cell{near, rejected}, claim.Inconclusive, farText + ": rejected: steal of 3s"},
		"not runnable":         {order, []claim.Cell{near, lacking}, claim.NotRunnable, "no program haproxy"},
		"a failure counts":     {order, []claim.Cell{near, lacking, later, reversed}, claim.Fails, "(fails in 1 of 2 comparisons)"},
		"some is enough":       {some, []claim.Cell{near, far, later, reversed}, claim.Holds, "(holds in 1 of 2 comparisons)"},
		"none is not":          {some, []claim.Cell{later, reversed}, claim.Fails, "edg10/a"},
		"one repetition":       {below, []claim.Cell{figures("lcl", "a", 0, 1)}, claim.Inconclusive, "it needs at least 2"},
		"two apart":            {below, []claim.Cell{figures("lcl", "a", 0, 1, 1.5)}, claim.Inconclusive, "more repetition"},
		"two alike":            {below, []claim.Cell{figures("lcl", "a", 0, 1, 1.01)}, claim.Holds, nearText},
		"just at the bound":    {at, []claim.Cell{figures("lcl", "a", 0, 1, 3)}, claim.Inconclusive, "lies at 2ms"},
		"near the bound":       {at, []claim.Cell{figures("lcl", "a", 0, 1, 3.0001)}, claim.Inconclusive, "1000 more repetitions would not settle it"},
		"no answer":            {below, []claim.Cell{figures("lcl", "a", 0)}, claim.Inconclusive, "a cell has no figure"},
		"no first request":     {first, []claim.Cell{near, far}, claim.Inconclusive, "a cell has no figure"},
		"two at one place":     {slope, []claim.Cell{near, figures("edg10", "a", 0, 1, 1, 1)}, claim.Inconclusive, "two cells lie at the same rtt"},
		"in whatever order":    {slope, []claim.Cell{figures("edg10", "a", time.Millisecond, 2, 2.01, 1.99), near}, claim.Holds, "2 levels of rtt"},
		"no cells":             {order, []claim.Cell{near}, claim.Inconclusive, "no cells to compare"},
		"the bound not itself": {below, []claim.Cell{figures("lcl", "a", 0, 2, 2, 2)}, claim.Fails, nearText},
	} {
		got, err := claim.Judge([]experiment.Claim{c.claim}, c.cells)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got[0].Result != c.result || !strings.Contains(got[0].Why, c.why) {
			t.Errorf("%s: got %s: %q %q; want %s: %q", name, got[0].Result, got[0].Effect, got[0].Why, c.result, c.why)
		}
	}
	if _, err := claim.Judge([]experiment.Claim{{Name: "n", Kind: "bound", Range: experiment.Range{Below: "5%"}}}, nil); err == nil {
		t.Error("a bound in another unit is taken")
	}
}

// A cell of which one repetition answered nothing, or one request took 0 ms: how many times
// as large another is has no end, and nothing makes it negative.
func TestRatioOfWhatMayBeNothing(t *testing.T) {
	a, b, none := figures("lcl", "a", 0), figures("lcl", "b", 0), figures("lcl", "c", 0)
	a.Rates, b.Rates, none.Rates = []float64{50, 50, 50}, []float64{0, 100, 100}, []float64{0, 100, 100}
	a.Values = measure.Repeat([][]float64{{6e6}, {6e6}, {6e6}})
	b.Values = measure.Repeat([][]float64{{0, 1e6, 1e6}, {3e6, 3e6, 3e6}, {3e6, 3e6, 3e6}})
	none.Values = b.Values
	d, e := figures("lcl", "d", 0), figures("lcl", "e", 0)
	d.Rates, d.Values = []float64{0, 0, 0}, measure.Repeat([][]float64{{0}, {0}, {0}})
	e.Rates, e.Values = d.Rates, d.Values
	for _, metric := range []string{"rate", "p50"} {
		for _, c := range []struct{ of, to, below, effect, why string }{
			{"a", "b", "5", "+∞]", "the interval has no end; more repetitions would tell"},
			{"c", "b", "1.5", "1", "both figures may be 0, which have no ratio"},
			{"d", "e", "2", "", "both figures are 0, which have no ratio"},
		} {
			ratio := experiment.Claim{
				Kind: "ratio", Metric: metric, Range: experiment.Range{Below: experiment.Bound(c.below)},
				Of: &experiment.Selector{System: []string{c.of}}, To: &experiment.Selector{System: []string{c.to}},
			}
			got, err := claim.Judge([]experiment.Claim{ratio}, []claim.Cell{a, b, none, d, e})
			if err != nil || got[0].Result != claim.Inconclusive || !strings.HasSuffix(got[0].Effect, c.effect) || !strings.Contains(got[0].Why, c.why) {
				t.Errorf("%s: %s %s: %s, %v; want inconclusive, …%s: …%s", got[0].Statement, got[0].Result, got[0].Effect, got[0].Why, err, c.effect, c.why)
			}
		}
	}
}

// TestEffect holds how a figure reads.
func TestEffect(t *testing.T) {
	of := &experiment.Selector{System: []string{"a"}}
	to := &experiment.Selector{System: []string{"b"}}
	cells := []claim.Cell{
		figures("lcl", "a", 0, 1, 1, 1), figures("edg10", "a", 10*time.Millisecond, 11, 11, 11),
		figures("lcl", "b", 0, 2, 2, 2), figures("edg10", "b", 10*time.Millisecond, 10, 10, 10),
	}
	// Of two repetitions so far apart the interval has no end.
	wide := figures("lcl", "c", 0)
	wide.Values = measure.Repeat([][]float64{{1e6, 1e6, 1e6}, {1e12}})
	cells = append(cells, wide)
	for i := range cells {
		cells[i].Repetitions = []measure.Summary{{Requests: 1000, Errors: 20}, {Requests: 1000, Errors: 20}}
		cells[i].Rates = []float64{200, 200}
	}
	lcl := &experiment.Selector{Scenario: []string{"lcl"}}
	above := experiment.Range{Above: "0"}
	for _, c := range []struct {
		claim experiment.Claim
		want  string
	}{
		{experiment.Claim{Kind: "order", Order: []experiment.Selector{*of, *to}, Where: lcl}, "2 [2, 2]"},
		{experiment.Claim{Kind: "ratio", Of: of, To: to, Range: above, Where: lcl}, "0.5 [0.5, 0.5]"},
		{experiment.Claim{Kind: "slope", Of: of, Over: "rtt", Range: above}, "1 [1, 1] ms per ms"},
		{experiment.Claim{Kind: "crossing", Of: of, To: to, Over: "rtt", Range: experiment.Range{Above: "1ms"}}, "5ms [5ms, 5ms]"},
		{experiment.Claim{Kind: "crossing", Of: to, To: of, Over: "rtt", Never: true}, "never [never, never]"},
		{experiment.Claim{Kind: "bound", Of: of, Minus: to, Range: above, Where: lcl}, "-1ms [-1ms, -1ms]"},
		{experiment.Claim{Kind: "bound", Of: &experiment.Selector{System: []string{"c"}}, Range: above}, "1ms [1ms, +∞]"},
		{experiment.Claim{Kind: "bound", Metric: "rate", Range: experiment.Range{Above: "1/s"}, Of: of, Where: lcl}, "200/s [200/s, 200/s]"},
	} {
		got, err := claim.Judge([]experiment.Claim{c.claim}, cells)
		if err != nil || got[0].Effect != c.want {
			t.Errorf("%s %s: got %q, %v; want %q", got[0].Kind, got[0].Statement, got[0].Effect, err, c.want)
		}
	}
	got, err := claim.Judge([]experiment.Claim{{Kind: "bound", Metric: "errors", Range: experiment.Range{Below: "10%"}, Of: of, Where: lcl}}, cells)
	if err != nil || got[0].Result != claim.Holds || !strings.HasPrefix(got[0].Effect, "2% [") {
		t.Errorf("errors: %+v, %v", got, err)
	}
}

// Of 60 answers none need be among the slowest 1 %: what lies below holds of no p99, and what
// lies above may.
func TestTailNeedsAnswers(t *testing.T) {
	near, far := figures("lcl", "a", 0), figures("lcl", "b", 0)
	times := func(n int, ms float64) []float64 { return slices.Repeat([]float64{ms * 1e6}, n) }
	near.Values = measure.Repeat([][]float64{times(20, 1), times(20, 1), times(20, 1)})
	far.Values = measure.Repeat([][]float64{times(200, 3), times(200, 3), times(200, 3)})
	a, b := &experiment.Selector{System: []string{"a"}}, &experiment.Selector{System: []string{"b"}}
	below, above := experiment.Range{Below: "2ms"}, experiment.Range{Above: "500us"}
	for _, c := range []struct {
		claim  experiment.Claim
		result claim.Result
		effect string
		why    string
	}{
		{experiment.Claim{Kind: "bound", Metric: "p99", Of: a, Range: below}, claim.Inconclusive, "1ms [1ms, +∞]", "p99 needs 368 answers, there are 60"},
		{experiment.Claim{Kind: "bound", Metric: "p99", Of: a, Range: above}, claim.Holds, "1ms [1ms, +∞]", ""},
		{experiment.Claim{Kind: "bound", Metric: "p90", Of: a, Range: below}, claim.Holds, "1ms [1ms, 1ms]", ""},
		{experiment.Claim{Kind: "ratio", Metric: "p99", Of: a, To: b, Range: experiment.Range{Below: "1"}}, claim.Inconclusive, "0.3333 [0.3333, +∞]", "p99 needs 368 answers, there are 60"},
		{experiment.Claim{Kind: "ratio", Metric: "p99", Of: b, To: a, Range: experiment.Range{Below: "4"}}, claim.Holds, "3 [0, 3]", ""},
		{experiment.Claim{Kind: "order", Metric: "p99", Order: []experiment.Selector{*a, *b}}, claim.Inconclusive, "3 [0, 3]", "p99 needs 368 answers, there are 60"},
	} {
		got, err := claim.Judge([]experiment.Claim{c.claim}, []claim.Cell{near, far})
		if err != nil || got[0].Result != c.result || got[0].Effect != c.effect || !strings.HasSuffix(got[0].Why, c.why) {
			t.Errorf("%s: %+v, %v; want %s %s %s", got[0].Statement, got[0], err, c.result, c.effect, c.why)
		}
	}
}

// A claim on times is judged by what was answered, and says how much was not.
func TestWhyNamesWhatFailed(t *testing.T) {
	cell := figures("lcl", "a", 0, 1, 1, 1)
	cell.Repetitions = []measure.Summary{{Requests: 10}, {Requests: 10, Errors: 6}, {Requests: 10}}
	cell.Rates = []float64{1, 1, 1}
	below := experiment.Claim{Kind: "bound", Range: experiment.Range{Below: "2ms"}}
	rate := experiment.Claim{Kind: "bound", Metric: "rate", Range: experiment.Range{Below: "2/s"}}
	got, err := claim.Judge([]experiment.Claim{below, rate}, []claim.Cell{cell})
	const failed = "; 20% of a cell's requests failed and have no time"
	if err != nil || got[0].Result != claim.Holds || !strings.HasSuffix(got[0].Why, failed) || strings.Contains(got[1].Why, "failed") {
		t.Errorf("%+v, %v; want one that holds and says %q", got, err, failed)
	}
}

func TestStatement(t *testing.T) {
	want := map[string]string{
		"true-order":           "p50: a < b",
		"true-order-of-rates":  "rate: b < a or d",
		"false-order-of-rates": "rate: b < a < d < b",
		"true-ratio":           "p50: b / a between 1.05 and 1.15",
		"true-first":           "first / p50 between 2 and 4",
		"true-slope":           "p50 grows over rtt by between 0.9 and 1.1 ms per ms, at every step, where a 1B",
		"open-gap":             "p50: b − a grows over rtt by above 0.1 ms per ms",
		"true-crossing":        "p50: a rises above c at rtt between 15ms and 25ms, where 1B",
		"true-never":           "p50: c and b do not cross over size, where edg40",
		"false-bound":          "p50: b − a below 500us, where 1B, in some cell",
		"true-share":           "share over 24.2ms above 0%, where edg20 a",
		"open-errors":          "errors below 2%, where d 1B or 100KB",
	}
	for _, c := range readPlanted(t).Claims {
		if w, ok := want[c.Name]; ok && claim.Statement(c) != w {
			t.Errorf("%s: got %q, want %q", c.Name, claim.Statement(c), w)
		}
		delete(want, c.Name)
	}
	for name := range want {
		t.Errorf("there is no claim %s", name)
	}
}
