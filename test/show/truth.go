package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/load"
)

// gateRounds are how often each tool has its turn.
const gateRounds = 5

const truthCommand = "make show AREA=truth"

// showTruth holds the lab's figures against independent tools.
func showTruth(ctx context.Context, b *bench) error {
	for _, part := range []struct {
		congestion string
		show       func(context.Context, *session) error
	}{{"cubic", b.agreement}, {"cubic", b.rateAgrees}, {"cubic", b.lossAgrees}, {"reno", b.mathis}} {
		if err := b.with(ctx, part.congestion, part.show); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) with(ctx context.Context, congestion string, f func(context.Context, *session) error) (err error) {
	s, err := b.open(ctx, congestion)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(ctx, s)
}

// agreement compares ping and curl with the lab's samples, in turns.
func (b *bench) agreement(ctx context.Context, s *session) error {
	server, err := s.serve(ctx, servicePort, s.agent, "serve", "hello-world", "--listen", "0.0.0.0:"+servicePort)
	if err != nil {
		return err
	}
	for _, rtt := range []time.Duration{2500 * time.Microsecond, 10 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		if err := b.toolsAgree(ctx, s, gate{rtt, gateRounds, fmt.Sprintf("RTT %s", rtt), truthCommand, s.packets}); err != nil {
			return err
		}
	}
	_, err = server.Stop(0)
	return err
}

// gate is a round trip on which tools have to agree, where it is, and what sets its links.
type gate struct {
	rtt            time.Duration
	rounds         int
	where, command string
	links          func(context.Context, impair.Impairment) error
}

// toolsAgree compares ping and curl with the lab's samples over one round trip. The kernel
// answers a ping, a process a request: what it takes to wake that one is told beside it, seen
// at the same pace where the link does nothing.
func (b *bench) toolsAgree(ctx context.Context, s *session, g gate) error {
	got, err := quietly(ctx, func() (v views, err error) {
		sleep, err := s.StayAwake(s.agent)
		if err != nil {
			return v, err
		}
		defer func() { err = errors.Join(err, sleep()) }()
		return s.inTurns(ctx, g)
	})
	if err != nil {
		return err
	}
	waking := difference(got.near, got.nearPing)
	const bound = float64(150 * time.Microsecond)
	for _, pair := range []struct {
		name, floor string
		a, b        []float64
	}{
		{"ping against samples at the pace of ping", waking.micro() + " without a link", got.paced, got.ping},
		{"curl against samples on a kept connection", "", got.kept, got.curlKept},
		{"curl against samples on new connections", "", got.fresh, got.curlFresh},
	} {
		e := difference(pair.a, pair.b)
		b.print(line{
			what: fmt.Sprintf("%s: %s, n=%d and %d", g.where, pair.name, len(pair.a), len(pair.b)),
			seen: "difference of medians " + e.micro(), bound: "within 150 us", floor: pair.floor,
			pass: math.Abs(e.value) <= bound, command: g.command,
		})
	}
	return nil
}

// views are response times of the same service as three programs see them, ns.
// paced are samples of as many threads as keep the pace of ping: a service that
// is asked once in 100 ms has cold caches, and answers later for it. near are those where
// the link does nothing.
type views struct{ nearPing, near, ping, paced, kept, fresh, curlKept, curlFresh []float64 }

// inTurns takes all of them over a link's round trip.
func (s *session) inTurns(ctx context.Context, g gate) (v views, err error) {
	const n, paced = 40, 400
	threads := max(1, int(g.rtt/pace))
	pings := func() ([]float64, error) { return s.pings(ctx, paced) }
	ask := func(a asks) func() ([]float64, error) {
		return func() ([]float64, error) { return s.request(ctx, a) }
	}
	curl := func(connection string) func() ([]float64, error) {
		return func() ([]float64, error) { return s.curl(ctx, connection, n) }
	}
	for range g.rounds {
		for _, turn := range []struct {
			into *[]float64
			over time.Duration
			take func() ([]float64, error)
		}{
			{&v.nearPing, 0, pings},
			{&v.near, 0, ask(asks{connection: load.Kept, n: paced, threads: 1, think: pace})},
			{&v.ping, g.rtt, pings},
			{&v.paced, g.rtt, ask(asks{connection: load.Kept, n: paced, threads: threads, ramp: g.rtt})},
			{&v.kept, g.rtt, ask(asks{connection: load.Kept, n: n, threads: 1})},
			{&v.curlKept, g.rtt, curl(load.Kept)},
			{&v.fresh, g.rtt, ask(asks{connection: load.New, n: n, threads: 1})},
			{&v.curlFresh, g.rtt, curl(load.New)},
		} {
			if err := g.links(ctx, delay(turn.over/2)); err != nil {
				return v, err
			}
			got, err := turn.take()
			if err != nil {
				return v, err
			}
			*turn.into = append(*turn.into, got...)
		}
	}
	return v, nil
}

// rateAgrees reads a 100 Mbit/s link by iperf3.
func (b *bench) rateAgrees(ctx context.Context, s *session) error {
	does := delay(time.Millisecond)
	does.Rate = 100e6
	e, err := s.rate(ctx, does, impair.UnitPacket)
	if err != nil {
		return err
	}
	b.print(line{
		what: "iperf3 over a 100 Mbit/s link", seen: e.show(1e6, "Mbit/s"), bound: "90 to 97 Mbit/s",
		pass: e.value >= 90e6 && e.value <= 97e6, command: truthCommand,
	})
	return nil
}

// lossAgrees counts answers to pings over 1 % loss each way.
func (b *bench) lossAgrees(ctx context.Context, s *session) error {
	const n, each = 20_000, 0.01
	lost, err := s.lostPings(ctx, n, each)
	if err != nil {
		return err
	}
	low, high := binomialBounds(n, 1-(1-each)*(1-each))
	b.print(line{
		what: fmt.Sprintf("%d pings over 1 %% loss each way", n), seen: fmt.Sprintf("%d lost", lost),
		bound: fmt.Sprintf("%d to %d (99 %% of the binomial)", low, high), pass: lost >= low && lost <= high, command: truthCommand,
	})
	return nil
}

// lostPings sends n pings over a loss each way and counts those without answer.
func (s *session) lostPings(ctx context.Context, n int, each float64) (int, error) {
	if err := s.both(ctx, impair.Impairment{Loss: quantity.Fraction(each)}, impair.UnitPacket); err != nil {
		return 0, err
	}
	out, err := s.output(ctx, "ping", "-q", "-c", strconv.Itoa(n), "-i", "0.001", "-W", "1", serviceHost)
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`).FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ping says %q", out)
	}
	received, err := strconv.Atoi(m[2])
	return n - received, err
}

// mathis compares Reno's throughput with MSS/RTT x C/sqrt(p), C = sqrt(3/2):
// Mathis, Semke, Mahdavi and Ott, Computer Communication Review 27:3 (1997),
// section 2.
func (b *bench) mathis(ctx context.Context, s *session) error {
	const mss, rtt, flows = 1448 * 8, 0.020, 8
	for _, p := range []float64{0.001, 0.01} {
		does := delay(10 * time.Millisecond)
		does.Loss = quantity.Fraction(p)
		if err := s.both(ctx, does, impair.UnitPacket); err != nil {
			return err
		}
		r, err := s.transfer(ctx, "-P", strconv.Itoa(flows), "-t", "25", "-O", "5")
		if err != nil {
			return err
		}
		want := mss / rtt * math.Sqrt(1.5/p)
		got := r.End.Received.Bps / flows
		b.print(line{
			what: fmt.Sprintf("Reno over 20 ms and %.1f %% loss, mean of %d flows", p*100, flows),
			seen: fmt.Sprintf("%.1f Mbit/s, ratio to Mathis %.2f", got/1e6, got/want), bound: "0.75 to 1.25",
			floor: fmt.Sprintf("Mathis %.1f Mbit/s", want/1e6), pass: math.Abs(got/want-1) <= 0.25, command: truthCommand,
		})
	}
	return nil
}
