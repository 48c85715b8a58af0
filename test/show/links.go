package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

const linksCommand = "make show AREA=links"

// showLinks measures the link emulator: how exact, how fast, how much memory.
func showLinks(ctx context.Context, b *bench) (err error) {
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, err := s.emulatorMemory(ctx)
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *session) error{b.delayError, b.throughput, b.smallPackets} {
		if err := part(ctx, s); err != nil {
			return err
		}
	}
	after, err := s.emulatorMemory(ctx)
	if err != nil {
		return err
	}
	const growthMax, mib = 32, 1 << 20
	b.print(line{
		what: "emulator's resident memory after all of these", pass: after-before < growthMax*mib,
		seen:  fmt.Sprintf("%.1f MiB, grown by %.1f MiB", float64(after)/mib, float64(after-before)/mib),
		bound: fmt.Sprintf("growth < %d MiB", growthMax), command: linksCommand,
	})
	return nil
}

// delayError times packets over the plain path and over each delay, in turns.
func (b *bench) delayError(ctx context.Context, s *session) error {
	const rounds, packets, rate = 5, 2000, 1000
	delays := []time.Duration{0, 1250 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond}
	times := make([][]float64, len(delays))
	for range rounds {
		for i, d := range delays {
			if err := s.both(ctx, delay(d), impair.UnitPacket); err != nil {
				return err
			}
			got, err := s.oneWay(ctx, rate, packets)
			if err != nil {
				return err
			}
			times[i] = append(times[i], got...)
		}
	}
	plain := measure.Sort(times[0])
	floor := fmt.Sprintf("plain path p50 %.1f p99 %.1f us", plain.Median()/1e3, plain.Quantile(0.99)/1e3)
	for i, d := range delays[1:] {
		for _, want := range []struct {
			name     string
			quantile float64
			less     float64
			bound    float64
		}{
			{"p50 over the plain path", 0.5, float64(d) + plain.Median(), 15e3},
			{"p99", 0.99, float64(d), 150e3},
		} {
			e := quantileOver(times[i+1], want.quantile, want.less)
			b.print(line{
				what: fmt.Sprintf("one-way error at %s, %s, n=%d", d, want.name, len(times[i+1])),
				seen: e.micro(), bound: fmt.Sprintf("<= %.0f us", want.bound/1e3), floor: floor,
				pass: e.value <= want.bound, command: linksCommand,
			})
		}
	}
	return nil
}

// throughput fills fast links.
func (b *bench) throughput(ctx context.Context, s *session) error {
	plain, err := s.rate(ctx, impair.Impairment{}, impair.UnitPacket)
	if err != nil {
		return err
	}
	floor := fmt.Sprintf("plain path %.1f Gbit/s", plain.value/1e9)
	gigabit := delay(50 * time.Millisecond)
	gigabit.Rate = 1e9
	for _, c := range []struct {
		name  string
		does  impair.Impairment
		unit  impair.Unit
		least float64
	}{
		{"throughput over 10 ms each way, super-packets", delay(10 * time.Millisecond), impair.UnitSuperpacket, 8e9},
		{"throughput over 1 Gbit/s and 100 ms round trip, super-packets", gigabit, impair.UnitSuperpacket, 0.92e9},
		{"throughput over 1 Gbit/s and 100 ms round trip, per packet", gigabit, impair.UnitPacket, 0.92e9},
	} {
		e, err := s.rate(ctx, c.does, c.unit)
		if err != nil {
			return err
		}
		b.print(line{
			what: c.name, seen: e.show(1e9, "Gbit/s"), bound: fmt.Sprintf(">= %.3g Gbit/s", c.least/1e9), floor: floor,
			pass: e.value >= c.least, command: linksCommand,
		})
	}
	return nil
}

// rate is the median of several transfers, with their range.
func (s *session) rate(ctx context.Context, i impair.Impairment, unit impair.Unit) (estimate, error) {
	const transfers = 3
	var rates []float64
	for range transfers {
		if err := s.both(ctx, i, unit); err != nil {
			return estimate{}, err
		}
		r, err := s.transfer(ctx, "-t", "6", "-O", "2")
		if err != nil {
			return estimate{}, err
		}
		rates = append(rates, r.End.Received.Bps)
	}
	sorted := measure.Sort(rates)
	return estimate{sorted.Median(), sorted.Min(), sorted.Max()}, nil
}

// smallPackets sends as many 16-byte datagrams as the sender can.
func (b *bench) smallPackets(ctx context.Context, s *session) error {
	floor, err := s.packetRate(ctx, impair.Impairment{})
	if err != nil {
		return err
	}
	const least = 140e3
	e, err := s.packetRate(ctx, delay(10*time.Millisecond))
	if err != nil {
		return err
	}
	b.print(line{
		what: "small packets received over 10 ms", seen: e.show(1e3, "kpps"), bound: fmt.Sprintf(">= %.0f kpps", least/1e3),
		floor: "plain path " + floor.show(1e3, "kpps"), pass: e.value >= least, command: linksCommand,
	})
	return nil
}

func (s *session) packetRate(ctx context.Context, i impair.Impairment) (estimate, error) {
	const runs = 3
	var rates []float64
	for range runs {
		if err := s.both(ctx, i, impair.UnitPacket); err != nil {
			return estimate{}, err
		}
		r, err := s.transfer(ctx, "-u", "-b", "0", "-l", "16", "-t", "4")
		if err != nil {
			return estimate{}, err
		}
		rates = append(rates, (r.End.Sum.Packets-r.End.Sum.LostPackets)/r.End.Sum.Seconds)
	}
	sorted := measure.Sort(rates)
	return estimate{sorted.Median(), sorted.Min(), sorted.Max()}, nil
}

// emulatorMemory is the emulator's resident memory in bytes.
func (s *session) emulatorMemory(ctx context.Context) (int64, error) {
	status, err := s.LinkStatus(ctx)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(status.Pid), "status"))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the emulator has no VmRSS")
}
