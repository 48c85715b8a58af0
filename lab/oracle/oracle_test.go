package oracle_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/topology"
)

const (
	ms      = time.Millisecond
	mbit100 = 100e6
	gbit    = 1e9
)

// hop is a link in both directions.
type hop struct {
	delay time.Duration
	rate  quantity.Rate
}

// predict has the requests of a cell cross links one after the other: from n0
// over n1 to the last, and back.
func predict(cell experiment.Cell, congestion string, hops ...hop) oracle.Prediction {
	path := []topology.Ref{"c1/n0"}
	for i, h := range hops {
		from := path[i]
		to := topology.Ref("c1/n" + string(rune('1'+i)))
		path = append(path, to)
		cell.Scenario.Links = append(cell.Scenario.Links, experiment.Link{
			Between:    []topology.Ref{from, to},
			Impairment: impair.Impairment{Delay: quantity.Duration(h.delay), Rate: h.rate},
		})
	}
	return oracle.Predict(cell, cell.Scenario.HopMap(path), congestion)
}

func cell(workload string, size quantity.Size, connection string) experiment.Cell {
	return experiment.Cell{Workload: workload, Size: size, Threads: 1, Connection: connection}
}

func echo(size quantity.Size, connection string) experiment.Cell {
	return cell("payload-echo", size, connection)
}

// with changes a cell.
func with(c experiment.Cell, change func(*experiment.Cell)) experiment.Cell {
	change(&c)
	return c
}

const (
	kept = experiment.ConnectionKept
	anew = experiment.ConnectionNew
)

// predicted is a cell and what is to be said of it.
type predicted struct {
	name       string
	cell       experiment.Cell
	congestion string
	hops       []hop
	// Limit, Expected and First in ms, and rounds.
	limit, expected, first float64
	rounds                 int
}

// predictions are worked out by hand, with segments of 1448 bytes of payload and
// 66 of headers: 121.12 us at 100 Mbit/s.
func predictions() []predicted {
	near := hop{delay: 5 * ms}
	slow := hop{delay: 5 * ms, rate: mbit100}
	return []predicted{
		{"nothing in the way", echo(1e6, anew), "cubic", []hop{{}}, 0, 0, 0, 0},
		{"round trip", cell("hello-world", 0, kept), "cubic", []hop{near}, 10, 10, 20, 0},
		{"dial each time", cell("hello-world", 0, anew), "cubic", []hop{near}, 10, 20, 20, 0},
		{"all hops", cell("hello-world", 0, kept), "cubic", []hop{near, {}, {delay: 7 * ms}}, 24, 24, 48, 0},
		{
			"service", with(cell("sleep", 0, kept), func(c *experiment.Cell) { c.Time = quantity.Duration(64 * ms) }),
			"cubic", []hop{near}, 74, 74, 84, 0,
		},
		// 10,148 bytes with the head: 8 segments, within the initial window.
		{"one window", echo(10e3, anew), "cubic", []hop{near}, 10, 20, 20, 0},
		// 14,332 bytes are 14,480 with 148 of head: just 10 segments. The answer
		// is shorter. One byte more has the request wait once.
		{"just one window", echo(14332, anew), "cubic", []hop{near}, 10, 20, 20, 0},
		{"just above one window", echo(14333, anew), "cubic", []hop{near}, 10, 30, 30, 1},
		// 100,149 and 100,102 bytes: 70 segments each, 10 + 20 + 40.
		{"three windows", echo(100e3, anew), "cubic", []hop{near}, 10, 60, 60, 4},
		// 691 segments each: 10 + 20 + 40 + 80 + 160 + 320 leave 61.
		{"seven windows", echo(1e6, anew), "reno", []hop{near}, 10, 140, 140, 12},
		{"request alone", cell("payload-recv", 1e6, anew), "bbr", []hop{near}, 10, 80, 80, 6},
		{"warm", echo(1e6, kept), "cubic", []hop{near}, 10, 10, 140, 0},
		// Idle for 310 ms with a timeout of 210 ms: the window of 70 is halved.
		{
			"idle for a little", with(echo(100e3, kept), func(c *experiment.Cell) { c.Think = quantity.Duration(300 * ms) }),
			"cubic", []hop{near}, 10, 30, 60, 2,
		},
		{
			"idle for long", with(echo(100e3, kept), func(c *experiment.Cell) { c.Think = quantity.Duration(5 * time.Second) }),
			"cubic", []hop{near}, 10, 50, 60, 4,
		},
		{
			"busy although thinking", with(echo(100e3, kept), func(c *experiment.Cell) { c.Think = quantity.Duration(200 * ms) }),
			"cubic", []hop{near}, 10, 10, 60, 0,
		},
		{
			"idle with bbr", with(echo(100e3, kept), func(c *experiment.Cell) { c.Think = quantity.Duration(5 * time.Second) }),
			"bbr", []hop{near}, 10, 10, 60, 0,
		},
		// 1,000,150 and 1,000,103 bytes in 691 segments are 1,045,756 and 1,045,709
		// on the wire: 83.66048 and 83.65672 ms. Each waits for what 10.12112 ms
		// have left of 10, 20, 40 and 80 segments: 8.90992 + 7.69872 + 5.27632 +
		// 0.43152 = 22.31648 ms.
		{"rate", echo(1e6, anew), "cubic", []hop{slow}, 177.3172, 231.95016, 231.95016, 8},
		// There the slower link waits for the first frame from the faster, 1514 bytes in
		// 12.112 us; back the faster has the last to pass on, 1049 bytes in 8.392 us.
		{"two rates", echo(1e6, anew), "cubic", []hop{{rate: gbit}, slow}, 177.337704, 231.970664, 231.970664, 8},
		// 1,045,606 bytes, and one frame of 1514 while the echo catches up. Both
		// directions wait at the same time.
		{
			"echo of a stream", with(echo(1e6, anew), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolTCP }),
			"cubic", []hop{slow}, 93.7696, 126.08608, 126.08608, 4,
		},
		// 3008 bytes with the header of UDP in 3 fragments, 34 bytes of headers
		// each: 3110 bytes, 24.88 ms each way.
		{
			"datagram", with(echo(3000, anew), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolUDP }),
			"cubic", []hop{{delay: 5 * ms, rate: 1e6}}, 59.76, 59.76, 59.76, 0,
		},
		// 79 + 100,000 + 7·9 bytes: 70 segments, 104,762 bytes, 8.38096 ms each way.
		// Waiting for 8.90992 + 7.69872 ms, each way.
		{
			"http/2", with(echo(100e3, anew), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolHTTP2 }),
			"cubic", []hop{slow}, 26.76192, 69.9792, 69.9792, 4,
		},
		// 18 + 1000 bytes in one frame of 1084; three round trips before the first.
		{
			"mqtt", with(echo(1000, anew), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolMQTT }),
			"cubic", []hop{slow}, 10.17344, 40.17344, 40.17344, 0,
		},
		// 69 + 8 + 1000 bytes there, 107 + 8 + 1000 back: frames of 1143 and 1181
		// bytes; seven round trips before the first.
		{
			"amqp", with(echo(1000, kept), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolAMQP }),
			"cubic", []hop{slow}, 10.18592, 10.18592, 80.18592, 0,
		},
	}
}

func TestPredict(t *testing.T) {
	for _, c := range predictions() {
		p := predict(c.cell, c.congestion, c.hops...)
		for _, figure := range []struct {
			name string
			got  time.Duration
			want float64
		}{{"limit", p.Limit, c.limit}, {"expected", p.Expected, c.expected}, {"first", p.First, c.first}} {
			if math.Abs(figure.got.Seconds()*1e3-figure.want) > 1e-5 {
				t.Errorf("%s: %s %s, want %gms", c.name, figure.name, figure.got, figure.want)
			}
		}
		if p.Rounds != c.rounds {
			t.Errorf("%s: %d rounds, want %d", c.name, p.Rounds, c.rounds)
		}
		if p.RTT+p.Serialisation+p.Service != p.Limit {
			t.Errorf("%s: %s + %s + %s are not the limit %s", c.name, p.RTT, p.Serialisation, p.Service, p.Limit)
		}
	}
}

// An answer takes the directions opposite to the request's.
func TestDirections(t *testing.T) {
	c := cell("static-reply", 0, kept)
	c.Scenario.Links = []experiment.Link{
		{From: "c2", To: "c1", Impairment: impair.Impairment{Delay: quantity.Duration(3 * ms)}},
		{From: "c1", To: "c2", Impairment: impair.Impairment{Delay: quantity.Duration(40 * ms), Rate: 1e6}},
	}
	p := oracle.Predict(c, c.Scenario.HopMap([]topology.Ref{"c2/a", "c1/a"}), "cubic")
	// 81 bytes of head, 1000 of body, 66 of headers: 1147 bytes at 1 Mbit/s.
	if p.RTT != 43*ms || p.Serialisation != 9176*time.Microsecond {
		t.Errorf("round trip %s, serialisation %s", p.RTT, p.Serialisation)
	}
}

// CRT-T3, direct: what the response time grew by, in round trips, for the sizes
// that were sent (EXPERIMENTS.md, "What the papers do not say" 2, 3 and 7).
func TestPaperSlowStart(t *testing.T) {
	for _, c := range []struct {
		size   quantity.Size
		paper  float64
		rounds float64
	}{{1428, 1.04, 1}, {14585, 1.92, 3}, {146409, 4.67, 7}, {1468879, 15.0, 13}} {
		idle := with(echo(c.size, kept), func(c *experiment.Cell) { c.Think = quantity.Duration(5 * time.Second) })
		slope := (predict(idle, "cubic", hop{delay: 15 * ms}).Expected - predict(idle, "cubic", hop{delay: 5 * ms}).Expected).Seconds() / 0.020
		if math.Abs(slope-c.rounds) > 1e-6 {
			t.Errorf("%s: %g round trips, want %g", c.size, slope, c.rounds)
		}
		// Within a factor of 1.6 of the paper, over a range of 15.
		if ratio := slope / c.paper; ratio > 1.6 || ratio < 1/1.6 {
			t.Errorf("%s: %g round trips, the paper has %g", c.size, slope, c.paper)
		}
	}
}

// INL-F4: users / (2 · hops · label + sleep).
func TestPaperRate(t *testing.T) {
	single := func(label time.Duration) []hop { return []hop{{delay: label}} }
	multi := func(label time.Duration) []hop { return []hop{{delay: label}, {delay: label}} }
	for _, c := range []struct {
		name  string
		users int
		sleep time.Duration
		hops  []hop
		want  float64
	}{
		{"single@25, 1 user", 1, 0, single(25 * ms), 20},
		{"multi@12.5, 1 user", 1, 0, multi(12500 * time.Microsecond), 20},
		{"single@25, 1 user, 50 ms", 1, 50 * ms, single(25 * ms), 10},
		{"single@100, 50 users", 50, 0, single(100 * ms), 250},
		{"multi@100, 50 users", 50, 0, multi(100 * ms), 125},
	} {
		asked := with(cell("sleep", 0, kept), func(x *experiment.Cell) { x.Threads, x.Time = c.users, quantity.Duration(c.sleep) })
		if p := predict(asked, "cubic", c.hops...); math.Abs(p.Rate-c.want) > 1e-9 {
			t.Errorf("%s: %g requests/s, want %g", c.name, p.Rate, c.want)
		}
	}
}

func TestRate(t *testing.T) {
	near := hop{delay: 5 * ms}
	four := with(cell("hello-world", 0, kept), func(c *experiment.Cell) { c.Threads, c.Think = 4, quantity.Duration(30*ms) })
	if p := predict(four, "cubic", near); p.Rate != 100 {
		t.Errorf("think time: %g requests/s, want 4 in 10 + 30 ms", p.Rate)
	}
	if p := predict(cell("hello-world", 0, anew), "cubic", near); p.Rate != 50 {
		t.Errorf("new connections: %g requests/s, want 1 in 2 round trips", p.Rate)
	}
	open := with(four, func(c *experiment.Cell) { c.Rate = 5 })
	if p := predict(open, "cubic", near); p.Rate != 0 {
		t.Errorf("open loop: %g requests/s", p.Rate)
	}
	if p := predict(four, "cubic", hop{}); p.Share(ms) != 0 || p.Rate <= 0 {
		t.Errorf("no links: share %g, %g requests/s", p.Share(ms), p.Rate)
	}
}

func TestShare(t *testing.T) {
	p := oracle.Prediction{Limit: 10 * ms}
	for median, want := range map[time.Duration]float64{10 * ms: 1, 40 * ms: 0.25, 0: 0} {
		if got := p.Share(median); got != want {
			t.Errorf("share of %s is %g, want %g", median, got, want)
		}
	}
}

// Stages of a link cost what links in a row do, which an answer meets from the other end,
// but for the proxies that could stand between those.
func TestStagesAreLinksInARow(t *testing.T) {
	slow := impair.Impairment{Delay: quantity.Duration(3 * ms), Rate: quantity.Rate(20e6)}
	fast := impair.Impairment{Delay: quantity.Duration(2 * ms), Rate: quantity.Rate(1e9)}
	row := predict(echo(1e5, anew), "reno", hop{3 * ms, slow.Rate}, hop{2 * ms, fast.Rate})
	c := echo(1e5, anew)
	c.Scenario.Links = []experiment.Link{
		{From: "c1/n0", To: "c1/n1", Impairment: slow, Then: []impair.Impairment{fast}},
		{From: "c1/n1", To: "c1/n0", Impairment: fast, Then: []impair.Impairment{slow}},
	}
	stages := oracle.Predict(c, c.Scenario.HopMap([]topology.Ref{"c1/n0", "c1/n1"}), "reno")
	if len(row.Notes) != 1 || len(stages.Notes) != 0 {
		t.Errorf("notes %q of links, %q of stages", row.Notes, stages.Notes)
	}
	row.Notes, stages.Notes = nil, nil
	if !reflect.DeepEqual(row, stages) || stages.RTT != 10*ms {
		t.Errorf("links in a row %+v\nstages         %+v", row, stages)
	}
}

// A note stands where, and only where, it matters.
func TestNotes(t *testing.T) {
	big := echo(1e6, kept)
	link := func(i impair.Impairment) experiment.Cell {
		c := big
		c.Scenario.Links = []experiment.Link{{Between: []topology.Ref{"c1/n0", "c1/n1"}, Impairment: i}}
		return c
	}
	delay := quantity.Duration(5 * ms)
	near := hop{delay: 5 * ms}
	for _, c := range []struct {
		name       string
		cell       experiment.Cell
		congestion string
		hops       []hop
		want       []string
	}{
		{"nothing in the way", big, "cubic", nil, nil},
		{"new connections", echo(1e6, anew), "cubic", []hop{near}, nil},
		{"warm", big, "cubic", []hop{near}, []string{"request 1 of a connection: 140ms, with the dial and 12 round trips of slow start"}},
		{
			"idle", with(big, func(c *experiment.Cell) { c.Think = quantity.Duration(time.Second) }),
			"cubic", []hop{near}, []string{"request 1", "retransmission timeout of about 210ms: slow start begins anew"},
		},
		{"open loop", with(big, func(c *experiment.Cell) { c.Rate = 2 }), "cubic", []hop{near}, []string{"request 1", "each connection waits about 500ms"}},
		{"busy open loop", with(big, func(c *experiment.Cell) { c.Rate = 5 }), "cubic", []hop{near}, []string{"request 1"}},
		{"open loop with bbr", with(big, func(c *experiment.Cell) { c.Rate = 2 }), "bbr", []hop{near}, []string{"request 1", "bbr paces"}},
		{"loss", link(impair.Impairment{Delay: delay, Loss: 0.01}), "reno", nil, []string{"request 1", "links lose packets"}},
		{"bursts", link(impair.Impairment{Delay: delay, Burst: impair.Burst{Enter: 0.01, Leave: 0.25}}), "reno", nil, []string{"request 1", "links lose packets"}},
		{"corruption", link(impair.Impairment{Delay: delay, Corrupt: 0.01}), "reno", nil, []string{"request 1", "links lose packets"}},
		{"duplicates", link(impair.Impairment{Delay: delay, Duplicate: 0.01}), "reno", nil, []string{"request 1"}},
		{"reordering", link(impair.Impairment{Delay: delay, Reorder: 0.01}), "reno", nil, []string{"request 1", "the limit is of the mean", "links reorder packets"}},
		{"skewed jitter", link(impair.Impairment{Delay: delay, Jitter: 1, Distribution: impair.Pareto}), "reno", nil, []string{"request 1", "the limit is of the mean"}},
		{"jitter in any order", link(impair.Impairment{Delay: delay, Jitter: 1, Unordered: true}), "reno", nil, []string{"request 1", "links reorder packets"}},
		{
			"a stage that loses", with(big, func(c *experiment.Cell) {
				c.Scenario.Links = []experiment.Link{{
					Between: []topology.Ref{"c1/n0", "c1/n1"}, Impairment: impair.Impairment{Delay: delay}, Then: []impair.Impairment{{Loss: 0.01}},
				}}
			}), "reno", nil, []string{"request 1", "links lose packets"},
		},
		{"jitter", link(impair.Impairment{Delay: delay, Jitter: 1}), "cubic", nil, []string{"request 1", "HyStart"}},
		{"jitter with reno", link(impair.Impairment{Delay: delay, Jitter: 1}), "reno", nil, []string{"request 1"}},
		{"another", big, "vegas", []hop{near}, []string{"request 1", "the slow start of vegas is taken for that of reno"}},
		{"two links", echo(1e3, anew), "cubic", []hop{near, near}, []string{"2 links have a delay"}},
		{"flow control", with(echo(1e6, anew), func(c *experiment.Cell) { c.Protocol = experiment.ProtocolHTTP2 }), "cubic", []hop{near}, []string{"flow control"}},
		{
			// 1,045,756 bytes are 83.66 ms: 11.95 a second.
			"full link", with(echo(1e6, anew), func(c *experiment.Cell) { c.Threads = 8 }),
			"cubic", []hop{{delay: 5 * ms, rate: mbit100}}, []string{"rate is reached at 12 requests/s"},
		},
		{
			"several entries", with(echo(1e3, anew), func(c *experiment.Cell) { c.Ratio, c.Threads = "4:0:2", 6 }),
			"cubic", []hop{near}, []string{"2 of 6 threads call another entry than the first, whose way this is"},
		},
		{"the first entry alone", with(echo(1e3, anew), func(c *experiment.Cell) { c.Ratio, c.Threads = "4:0", 4 }), "cubic", []hop{near}, nil},
		{"burn", with(cell("burn", 0, anew), func(c *experiment.Cell) { c.Threads = 8 }), "cubic", nil, []string{"core busy"}},
	} {
		p := predict(c.cell, c.congestion, c.hops...)
		if c.hops == nil {
			p = oracle.Predict(c.cell, c.cell.Scenario.HopMap([]topology.Ref{"c1/n0", "c1/n1"}), c.congestion)
		}
		if !slices.EqualFunc(p.Notes, c.want, strings.Contains) {
			t.Errorf("%s: notes %q, want %q", c.name, p.Notes, c.want)
		}
	}
	if p := oracle.Predict(big, experiment.HopMap{}, "cubic"); len(p.Notes) != 1 || p.Limit != 0 {
		t.Errorf("no way: %+v", p)
	}
}

// More bytes, a longer way, a slower link: nothing of that makes a request
// faster, whatever else it meets.
func TestMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 2000 {
		c := echo(quantity.Size(rng.IntN(5e6)+1), pick(kept, anew))
		c.Protocol = pick("", experiment.ProtocolHTTP2, experiment.ProtocolTCP, experiment.ProtocolMQTT, experiment.ProtocolAMQP)
		c.Think = quantity.Duration(rng.Int64N(int64(3 * time.Second)))
		h := hop{time.Duration(rng.Int64N(int64(100 * ms))), quantity.Rate(1e6 + rng.Int64N(1e9))}
		congestion := pick("cubic", "reno", "bbr")
		base := predict(c, congestion, h)

		more, far, slow := c, h, h
		more.Size += quantity.Size(rng.IntN(1e6))
		far.delay += time.Duration(rng.Int64N(int64(50 * ms)))
		slow.rate = quantity.Rate(float64(h.rate) * (0.1 + 0.9*rng.Float64()))
		for name, p := range map[string]oracle.Prediction{
			"more bytes": predict(more, congestion, h), "longer way": predict(c, congestion, far), "slower link": predict(c, congestion, slow),
		} {
			// What an idle time leaves of a window is no such figure: more bytes have
			// made it larger before, a longer way has a longer timeout.
			idles := c.Connection == kept
			if p.Limit < base.Limit || p.First < base.First || !idles && p.Expected < base.Expected {
				t.Fatalf("%s than %s over %+v by %s: limit %s → %s, expected %s → %s, first %s → %s",
					name, c, h, congestion, base.Limit, p.Limit, base.Expected, p.Expected, base.First, p.First)
			}
		}
		if base.Limit > base.Expected || base.Expected > base.First {
			t.Fatalf("%s over %+v: limit %s, expected %s, first %s", c, h, base.Limit, base.Expected, base.First)
		}
	}
}
