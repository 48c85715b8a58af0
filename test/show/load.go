package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

const loadCommand = "make show AREA=load"

// The server has a core and what drives it another. Left to the scheduler, a
// program on the server's own core sees a fifth of the response time that it
// sees on the other, and which it is changes from turn to turn.
const serverCore, loadCore = "0", "1"

// on has a program run on one core.
func on(core string, args ...string) []string {
	return append([]string{"taskset", "-c", core}, args...)
}

// showLoad holds the load beside wrk (closed loop) and vegeta (open loop): the
// same connections to the same server, in turns.
func showLoad(ctx context.Context, b *bench) error {
	return b.with(ctx, "cubic", func(ctx context.Context, s *session) error {
		if err := b.besideWrk(ctx, s); err != nil {
			return err
		}
		return b.besideVegeta(ctx, s)
	})
}

// speed of a program: its median response time in ns and its requests a second.
type speed struct{ median, perSecond float64 }

// besideWrk drives hello-world as fast as it goes. The machine drifts by more
// than the two differ, so each turn of the load is compared with the mean of
// wrk's before and after it, and figures are medians of these.
func (b *bench) besideWrk(ctx context.Context, s *session) (err error) {
	server, err := s.serve(ctx, servicePort, on(serverCore, s.agent, "serve", workload.HelloWorld, "--listen", "0.0.0.0:"+servicePort)...)
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := server.Stop(0)
		err = errors.Join(err, stopErr)
	}()
	const rounds, turn = 20, time.Second
	for _, connections := range []int{1, 2, 8, 32} {
		var over, share []float64
		before, err := s.wrk(ctx, connections, turn)
		if err != nil {
			return err
		}
		for range rounds {
			ours, err := s.closed(ctx, connections, int(before.perSecond*turn.Seconds()))
			if err != nil {
				return err
			}
			after, err := s.wrk(ctx, connections, turn)
			if err != nil {
				return err
			}
			over = append(over, ours.median-(before.median+after.median)/2)
			share = append(share, 2*ours.perSecond/(before.perSecond+after.perSecond))
			before = after
		}
		const bound, least = float64(15 * time.Microsecond), 0.5
		plural := "s"
		if connections == 1 {
			plural = ""
		}
		name := fmt.Sprintf("closed loop on %d connection%s, %d turns", connections, plural, rounds)
		e := medianOf(over)
		b.print(line{
			what: name + ": median less wrk's", seen: e.micro(), bound: "within 15 us",
			pass: math.Abs(e.value) <= bound, command: loadCommand,
		})
		e = medianOf(share)
		b.print(line{
			what: name + ": throughput as a share of wrk's", seen: e.show(0.01, "%"), bound: ">= 50 %",
			pass: e.value >= least, command: loadCommand,
		})
	}
	return nil
}

// medianOf some turns, with the interval of a bootstrap over them.
func medianOf(values []float64) estimate {
	return bootstrap(func(s ...measure.Sorted) float64 { return s[0].Median() }, values)
}

// wrk drives hello-world by one thread, as the load does.
func (s *session) wrk(ctx context.Context, connections int, turn time.Duration) (speed, error) {
	out, err := s.output(ctx, on(loadCore, "wrk", "-t1", fmt.Sprintf("-c%d", connections), "-d"+turn.String(), "--latency",
		"http://"+serviceHost+":"+servicePort+"/")...)
	if err != nil {
		return speed{}, err
	}
	return readWrk(out)
}

// readWrk reads what wrk prints with --latency.
func readWrk(out string) (speed, error) {
	median := regexp.MustCompile(`\n\s+50%\s+([0-9.]+(?:us|ms|s))\n`).FindStringSubmatch(out)
	rate := regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`).FindStringSubmatch(out)
	if median == nil || rate == nil || strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") {
		return speed{}, fmt.Errorf("wrk says %q", out)
	}
	d, err := time.ParseDuration(median[1])
	if err != nil {
		return speed{}, err
	}
	perSecond, err := strconv.ParseFloat(rate[1], 64)
	return speed{float64(d), perSecond}, err
}

// closed drives hello-world with about n requests, all threads together.
func (s *session) closed(ctx context.Context, connections, n int) (speed, error) {
	rows, err := s.drive(ctx, load.Spec{
		Target: serviceHost + ":" + servicePort, Workload: workload.HelloWorld,
		Threads: connections, Iterations: max(1, n/connections),
	})
	if err != nil {
		return speed{}, err
	}
	first, last := int64(math.MaxInt64), int64(0)
	times := make([]float64, len(rows))
	for i, r := range rows {
		first, last = min(first, r.ScheduledNs), max(last, r.LastByteNs)
		times[i] = float64(r.ResponseNs())
	}
	return speed{measure.Sort(times).Median(), float64(len(rows)) / time.Duration(last-first).Seconds()}, nil
}

// drive runs a load in the client's node and returns its rows, none with an error.
func (s *session) drive(ctx context.Context, spec load.Spec) ([]sample.Request, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	file, samples := filepath.Join(s.dir, "spec.json"), filepath.Join(s.dir, "requests.parquet")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	if _, err := s.output(ctx, on(loadCore, s.agent, "load", "--spec", file, "--out", samples)...); err != nil {
		return nil, err
	}
	rows, err := readRows(samples, sample.ReadRequests)
	for _, r := range rows {
		if r.Error != "" {
			return nil, fmt.Errorf("a request failed: %s", r.Error)
		}
	}
	return rows, err
}

// besideVegeta has requests of 4 ms of CPU time arrive evenly, half as many as
// the server's core could do, over plain links and over 5 ms of round trip. With
// 1 ms the peer is no measure: vegeta is late by itself then, and its p99 200 to
// 700 us over that of the load, by the same server.
func (b *bench) besideVegeta(ctx context.Context, s *session) (err error) {
	vegeta, err := exec.CommandContext(ctx, "go", "tool", "-n", "-modfile=tools/go.mod", "vegeta").Output()
	if err != nil {
		return fmt.Errorf("build vegeta: %w", err)
	}
	const port = "8081"
	server, err := s.serve(ctx, port, on(serverCore, s.agent, "serve", workload.Burn, "--listen", "0.0.0.0:"+port)...)
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := server.Stop(0)
		err = errors.Join(err, stopErr)
	}()
	a := attack{program: strings.TrimSpace(string(vegeta)), port: port, burn: 4 * time.Millisecond, rate: 125, connections: 16, lasts: 6 * time.Second}
	for _, rtt := range []time.Duration{0, 5 * time.Millisecond} {
		if err := s.both(ctx, delay(rtt/2), impair.UnitPacket); err != nil {
			return err
		}
		if err := b.agree(ctx, s, a, rtt); err != nil {
			return err
		}
	}
	return nil
}

// agree holds p50 and p99 of each turn within 5 % or 100 us of the turn of
// vegeta before it: figures are medians of the differences, for a hiccup of the
// machine is in one turn alone. Each counts as it does for its users: the load
// from when a request was due, vegeta from when one of its workers took it up.
func (b *bench) agree(ctx context.Context, s *session, a attack, rtt time.Duration) error {
	const rounds = 16
	levels := []float64{0.5, 0.99}
	var over, theirs [2][]float64 // by level
	for range rounds {
		other, err := s.vegeta(ctx, a)
		if err != nil {
			return err
		}
		ours, err := s.open(ctx, a)
		if err != nil {
			return err
		}
		for i, p := range levels {
			v := measure.Sort(other).Quantile(p)
			theirs[i] = append(theirs[i], v)
			over[i] = append(over[i], measure.Sort(ours).Quantile(p)-v)
		}
	}
	for i, p := range levels {
		want := measure.Sort(theirs[i]).Median()
		bound := max(0.05*want, float64(100*time.Microsecond))
		e := medianOf(over[i])
		b.print(line{
			what: fmt.Sprintf("open loop at 50 %% load, RTT %s, %d turns: p%.0f less vegeta's", rtt, rounds, p*100),
			seen: e.micro(), bound: fmt.Sprintf("within %.0f us", bound/1e3), floor: fmt.Sprintf("vegeta %.0f us", want/1e3),
			pass: math.Abs(e.value) <= bound, command: loadCommand,
		})
	}
	return nil
}

// attack is an open loop on the workload burn.
type attack struct {
	program, port string
	burn, lasts   time.Duration
	rate          float64
	connections   int
}

// open drives the load and returns response times in ns.
func (s *session) open(ctx context.Context, a attack) (times []float64, err error) {
	rows, err := s.drive(ctx, load.Spec{
		Target: serviceHost + ":" + a.port, Workload: workload.Burn, Work: load.Work{Time: quantity.Duration(a.burn)}, Threads: a.connections,
		OpenLoop: load.OpenLoop{Rate: quantity.Frequency(a.rate), Duration: quantity.Duration(a.lasts)},
	})
	for _, r := range rows {
		times = append(times, float64(r.ResponseNs()))
	}
	return times, err
}

// vegeta drives the same and returns its latencies in ns.
func (s *session) vegeta(ctx context.Context, a attack) ([]float64, error) {
	target := fmt.Sprintf("GET http://%s:%s/?ms=%g", serviceHost, a.port, a.burn.Seconds()*1e3)
	// Its collector would take the one core for milliseconds: a tail of vegeta's own.
	attacks := fmt.Sprintf("echo '%s' | GOGC=off %s attack -rate=%g -duration=%s -workers=%d -max-workers=%d -connections=%d | %s encode -to csv",
		target, a.program, a.rate, a.lasts, a.connections, a.connections, a.connections, a.program)
	out, err := s.output(ctx, on(loadCore, "sh", "-c", attacks)...)
	if err != nil {
		return nil, err
	}
	return readVegeta(strings.NewReader(out))
}

// readVegeta reads the latencies in ns of results as CSV: time, status, latency,
// bytes out, bytes in, error and more.
func readVegeta(r io.Reader) ([]float64, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord = -1
	records, err := c.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read what vegeta says: %w", err)
	}
	var times []float64
	for _, record := range records {
		if len(record) < 6 || record[1] != "200" {
			return nil, fmt.Errorf("vegeta says %q", record)
		}
		v, err := strconv.ParseFloat(record[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read what vegeta says: %w", err)
		}
		times = append(times, v)
	}
	return times, nil
}
