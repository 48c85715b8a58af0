package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/trace"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/topology"
)

const traceCommand = "make show AREA=trace"

const (
	// correlationLeast is of a trace and what is seen of it, second by second.
	correlationLeast = 0.95
	// pingPace is the time from one ping to the next.
	pingPace = 100 * time.Millisecond
)

// showTrace replays each built-in trace whole, and watches it by the tools that
// anybody has: iperf3 sends more than the link lets go over one link, ping goes
// over another one of the same trace at the same time.
func showTrace(ctx context.Context, b *bench) error {
	for _, name := range trace.Names() {
		err := b.with(ctx, "cubic", func(ctx context.Context, s *session) error { return b.replayed(ctx, s, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Ends of the second link.
const (
	pinging = topology.Ref("c2/head")
	pinged  = topology.Ref("c1/head")
)

func (b *bench) replayed(ctx context.Context, s *session, name string) error {
	t, _ := trace.Model(name, trace.Seed)
	does := impair.Impairment{Trace: name, Queue: 1 << 20}
	err := s.SetLinks(ctx, []host.Link{{From: client, To: service, Does: does}, {From: pinging, To: pinged, Does: does}}, 1)
	if err != nil {
		return err
	}
	began := time.Now()
	var rates, delays []float64
	var ratesFrom time.Duration
	together, ctx := errgroup.WithContext(ctx)
	together.Go(func() (err error) {
		ratesFrom = time.Since(began)
		rates, err = s.received(ctx, 1.2*most(t), t.Span-2*time.Second)
		return err
	})
	together.Go(func() (err error) {
		delays, err = s.pinged(ctx, began, t.Span-2*time.Second)
		return err
	})
	if err := together.Wait(); err != nil {
		return err
	}
	b.correlates(name, "rate that iperf3 receives", rates, secondly(t, ratesFrom, len(rates), rateOf, measure.Sorted.Mean))
	b.correlates(name, "round trip that ping sees", delays, secondly(t, 0, len(delays), delayOf, measure.Sorted.Median))
	return nil
}

func rateOf(s trace.Step) float64  { return s.Rate }
func delayOf(s trace.Step) float64 { return float64(s.Delay) }

func (b *bench) correlates(name, what string, seen, replayed []float64) {
	r := correlation(seen, replayed)
	b.print(line{
		what: fmt.Sprintf("trace %s, %d s: %s follows it, correlation at 1 s", name, len(seen), what),
		seen: fmt.Sprintf("%.4f", r), bound: fmt.Sprintf(">= %g", correlationLeast), pass: r >= correlationLeast, command: traceCommand,
	})
}

// received is the rate in bit/s that the service receives in each second, of
// datagrams that are sent faster than the link lets go.
func (s *session) received(ctx context.Context, rate float64, lasts time.Duration) ([]float64, error) {
	out, err := s.iperf(ctx, "--get-server-output", "-u", "-l", "1400", "-b", strconv.FormatFloat(rate, 'f', 0, 64), "-t", strconv.Itoa(int(lasts.Seconds())))
	if err != nil {
		return nil, err
	}
	return readIntervals(out)
}

// readIntervals reads the rates of the receiver, second by second.
func readIntervals(out string) ([]float64, error) {
	var said struct {
		Error  string `json:"error"`
		Server struct {
			Intervals []struct {
				Sum struct {
					Bps     float64 `json:"bits_per_second"`
					Seconds float64 `json:"seconds"`
				} `json:"sum"`
			} `json:"intervals"`
		} `json:"server_output_json"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Error != "" {
		return nil, fmt.Errorf("read what iperf3 says: %w %s", err, said.Error)
	}
	var rates []float64
	for _, i := range said.Server.Intervals {
		if i.Sum.Seconds > 0.5 { // the last one is what is left over
			rates = append(rates, i.Sum.Bps)
		}
	}
	return rates, nil
}

// pinged is the median round trip in ns of the pings that were sent in each second
// from a moment on; one that got no answer counts for nothing.
func (s *session) pinged(ctx context.Context, began time.Time, lasts time.Duration) ([]float64, error) {
	n := int(lasts / pingPace)
	var out bytes.Buffer
	err := s.Run(ctx, host.Command{
		Node: pinging, Name: "ping", Stdout: &out,
		Args: []string{"ping", "-D", "-c", strconv.Itoa(n), "-i", fmt.Sprint(pingPace.Seconds()), strings.ReplaceAll(string(pinged), "/", "-")},
	})
	if err != nil {
		return nil, fmt.Errorf("ping: %w: %s", err, lastPart(out.String()))
	}
	return bySecond(out.String(), began, int(lasts.Seconds()))
}

// bySecond reads what ping -D says: the time of each answer and its round trip.
func bySecond(out string, began time.Time, seconds int) ([]float64, error) {
	times := make([][]float64, seconds)
	for _, m := range regexp.MustCompile(`\[([0-9.]+)\] .* time=([0-9.]+) ms`).FindAllStringSubmatch(out, -1) {
		answered, answeredErr := strconv.ParseFloat(m[1], 64)
		ms, msErr := strconv.ParseFloat(m[2], 64)
		if err := errors.Join(answeredErr, msErr); err != nil {
			return nil, err
		}
		sent := answered - ms/1e3 - float64(began.UnixNano())/1e9
		if second := int(math.Floor(sent)); second >= 0 && second < seconds {
			times[second] = append(times[second], ms*1e6)
		}
	}
	medians := make([]float64, seconds)
	for i := range times {
		medians[i] = measure.Sort(times[i]).Median()
	}
	return medians, nil
}

// secondly is a figure of the trace in each of n seconds from a moment on, as
// summed up by of.
func secondly(t *trace.Trace, from time.Duration, n int, figure func(trace.Step) float64, of func(measure.Sorted) float64) []float64 {
	const look = 10 * time.Millisecond
	values := make([]float64, n)
	for i := range values {
		var all []float64
		begins := from + time.Duration(i)*time.Second
		for at := begins; at < begins+time.Second; at += look {
			all = append(all, figure(t.At(at)))
		}
		values[i] = of(measure.Sort(all))
	}
	return values
}

// most is the highest rate of a trace.
func most(t *trace.Trace) (rate float64) {
	for _, s := range t.Steps {
		rate = max(rate, s.Rate)
	}
	return rate
}

// correlation is Pearson's, of pairs that both have a figure.
func correlation(a, b []float64) float64 {
	var x, y []float64
	for i := range min(len(a), len(b)) {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	return stat.Correlation(x, y, nil)
}
