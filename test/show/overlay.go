package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/overlay/control"
)

const overlayCommand = "make show AREA=overlay"

// showOverlay shows all of the overlay.
func showOverlay(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context, *bench) error{showOverlayLatency, showOverlayWindows, showOverlayBench, showOverlayKills, showOverlayGuest} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// punctual is what a daemon has said at the end of a repetition, and how late polling alone
// was just before.
type punctual struct {
	control.Status
	floor struct {
		P50 float64 `json:"p50_ns"`
		P99 float64 `json:"p99_ns"`
	}
}

// punctualities reads those of a system's repetitions, in their order.
func punctualities(run, system string) (all []punctual, err error) {
	folders, err := filepath.Glob(filepath.Join(run, "cells", "*", "[0-9]*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(folders)
	for _, folder := range folders {
		var r struct{ Cell experiment.Cell }
		if err := readJSON(filepath.Join(folder, "repetition.json"), &r); err != nil {
			return nil, err
		}
		if r.Cell.System != system || strings.Contains(folder, "rejected") {
			continue
		}
		if strings.Contains(system, "+") { // in a stack each has a folder of its own
			folder = filepath.Join(folder, "ktsn-preload")
		}
		var p punctual
		floor := struct{ Late any }{&p.floor}
		if err := errors.Join(readJSON(filepath.Join(folder, "overlay.json"), &p.Status), readJSON(filepath.Join(folder, "floor.json"), &floor)); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no repetitions in %s", system, run)
	}
	return all, nil
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// figuresOf are of each repetition.
func figuresOf(all []punctual, figure func(punctual) float64) (values []float64) {
	for _, p := range all {
		values = append(values, figure(p))
	}
	return values
}

// showOverlayLatency runs KuberneTSN's figures 3 and 4, and holds how late packets leave
// to how late polling alone is, also beside best effort.
func showOverlayLatency(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-overlay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range []string{"ktsn-f3", "ktsn-beside"} {
		input, err := b.runs(ctx, filepath.Join("experiments", name+".yaml"), filepath.Join(dir, name))
		if err != nil {
			return err
		}
		b.judged(input, overlayCommand)
	}
	alone, err := punctualities(filepath.Join(dir, "ktsn-f3"), "ktsn-preload")
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name        string
		late, floor func(punctual) float64
		most        time.Duration
	}{
		{"p50", func(p punctual) float64 { return float64(p.Late.P50) }, func(p punctual) float64 { return p.floor.P50 }, 500 * time.Nanosecond},
		{"p99", func(p punctual) float64 { return float64(p.Late.P99) }, func(p punctual) float64 { return p.floor.P99 }, 5 * time.Microsecond},
	} {
		over := medianOf(figuresOf(alone, func(p punctual) float64 { return of.late(p) - of.floor(p) }))
		b.print(line{
			what: fmt.Sprintf("how long after its time a packet is handed to the port, %s over that of polling alone, n=%d", of.name, len(alone)),
			seen: over.show(1, " ns"), bound: "<= " + of.most.String(),
			floor: medianOf(figuresOf(alone, of.floor)).show(1, " ns"), command: overlayCommand, pass: over.value <= float64(of.most),
		})
	}
	return b.besideBestEffort(filepath.Join(dir, "ktsn-beside"))
}

// besideBestEffort holds the lateness of packets beside other traffic to that without.
func (b *bench) besideBestEffort(run string) error {
	alone, err := punctualities(run, "ktsn-preload")
	if err != nil {
		return err
	}
	beside, err := punctualities(run, "best-effort+ktsn-preload")
	if err != nil {
		return err
	}
	if len(alone) != len(beside) {
		return fmt.Errorf("%d repetitions alone and %d beside", len(alone), len(beside))
	}
	p50 := func(p punctual) float64 { return float64(p.Late.P50) }
	ratio := medianOf(quotients(figuresOf(beside, p50), figuresOf(alone, p50)))
	const most = 1.1
	b.print(line{
		what: fmt.Sprintf("how long after its time a packet is handed to the port, p50, beside 200 Mbit/s of best effort, n=%d", len(beside)),
		seen: ratio.show(1, " of that alone"), bound: fmt.Sprintf("<= %g", most),
		floor: medianOf(figuresOf(alone, p50)).show(1, " ns alone"), command: overlayCommand, pass: ratio.value <= most,
	})
	return nil
}

// window of each traffic class in systems/ktsn-preload: an eighth of the cycle, the highest
// class first.
const (
	windowCycle = time.Millisecond
	window      = windowCycle / 8
)

// showOverlayWindows has eight talkers send for ten minutes, each in its class.
func showOverlayWindows(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-overlay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run := filepath.Join(dir, "ktsn-classes")
	input, err := b.runs(ctx, filepath.Join("experiments", "ktsn-classes.yaml"), run)
	if err != nil {
		return err
	}
	b.judged(input, overlayCommand)
	said, err := punctualities(run, "ktsn-preload")
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(run, "cells", "*", "[0-9]*", "oneway.parquet"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%d files of packets: %w", len(files), err)
	}
	packets, err := readRows(files[0], sample.ReadOneWay)
	if err != nil {
		return err
	}
	var tai, wall unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_TAI, &tai), unix.ClockGettime(unix.CLOCK_REALTIME, &wall)); err != nil {
		return err
	}
	offset := time.Duration(tai.Nano() - wall.Nano()).Round(time.Second) // of whole seconds
	b.windows(said[0].Status, packets, offset)
	return nil
}

// windows counts the packets that were not where and when they had to be; offset is that
// of CLOCK_TAI to the times of packets.
func (b *bench) windows(s control.Status, packets []sample.OneWay, offset time.Duration) {
	var misplaced, unexplained uint64
	for _, c := range s.Classes {
		misplaced += c.Misplaced
		unexplained += c.Unexplained
	}
	var outside, lost, reordered int
	last := map[int32]int64{}
	for _, p := range packets {
		switch at := time.Duration(p.ReceivedNs+int64(offset)) % windowCycle; {
		case p.ReceivedNs == 0:
			lost++
			continue
		case at/window != time.Duration(p.Flow):
			outside++
		}
		if p.ReceivedNs < last[p.Flow] {
			reordered++
		}
		last[p.Flow] = p.ReceivedNs
	}
	b.print(line{
		what: fmt.Sprintf("%d packets of 8 talkers in 8 classes, each in its window of %s: lost, reordered in their class, outside without a gap in polling that says why", len(packets), window),
		seen: fmt.Sprintf("%d, %d, %d", lost, reordered, unexplained), bound: "0, 0, 0", command: overlayCommand,
		pass: lost == 0 && reordered == 0 && unexplained == 0,
	})
	b.print(line{
		what:  "those that arrived outside of their window, all of which the daemon knows of",
		seen:  fmt.Sprintf("%d, of %d that it counts, with a longest gap in polling of %s", outside, misplaced, s.Gap.Max),
		bound: "no more than it counts", command: overlayCommand, pass: uint64(outside) <= misplaced, //nolint:gosec // a count
	})
}

// Packets of the data plane's benchmarks.
const (
	benchRounds  = 12
	schedPackets = 3_000_000
	schedWaiting = 65_536
	xdpPackets   = 300_000
	xdpBatch     = 32
)

// showOverlayBench measures the scheduler alone, and the AF_XDP port beside a sender that
// is nothing but one.
func showOverlayBench(ctx context.Context, b *bench) error {
	var speeds, port, bare []float64
	for range benchRounds {
		speed, err := dataPlane(ctx, "", "sched", strconv.Itoa(schedPackets), strconv.Itoa(schedWaiting))
		if err != nil {
			return err
		}
		speeds = append(speeds, speed)
		for _, arm := range []struct {
			args []string
			into *[]float64
		}{{[]string{"port", "af_xdp:talks"}, &port}, {[]string{"bare", "talks"}, &bare}} {
			speed, err := dataPlane(ctx, "talks", append(arm.args, strconv.Itoa(xdpPackets), strconv.Itoa(xdpBatch))...)
			if err != nil {
				return err
			}
			*arm.into = append(*arm.into, speed)
		}
	}
	const least = 3e6
	speed := medianOf(speeds)
	b.print(line{
		what: fmt.Sprintf("packets of 64 B that are written, scheduled by 3 windows and sent to a port which drops them, n=%d", benchRounds),
		seen: speed.show(1e6, " M/s"), bound: fmt.Sprintf(">= %g M/s", least/1e6), command: overlayCommand, pass: speed.value >= least,
	})
	const share = 0.8
	ratio := medianOf(quotients(port, bare))
	b.print(line{
		what: fmt.Sprintf("the AF_XDP port, %d frames a flush, beside a sender of descriptors alone, n=%d", xdpBatch, benchRounds),
		seen: ratio.show(1, ""), bound: fmt.Sprintf(">= %g", share), floor: medianOf(bare).show(1e6, " M/s"),
		command: overlayCommand, pass: ratio.value >= share,
	})
	return nil
}

// dataPlane runs one of its benchmarks, in a namespace of its own with a cable of which one
// end is named so, and returns packets a second.
func dataPlane(ctx context.Context, cable string, args ...string) (float64, error) {
	script := `exec bin/ktsn-bench "$@"`
	if cable != "" {
		script = "ip link add " + cable + " type veth peer name hears && ip link set hears up && ip link set " + cable + " up && " + script
	}
	out, err := exec.CommandContext(ctx, "unshare", append([]string{"--net", "sh", "-ec", script, "sh"}, args...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("ktsn-bench %s: %w", strings.Join(args, " "), err)
	}
	var said struct {
		PerSecond float64 `json:"per_second"`
	}
	return said.PerSecond, json.Unmarshal(out, &said)
}

// kills of daemons and of programs, and how long programs may take to send again.
const (
	kills    = 100
	recovery = 100 * time.Millisecond
)

// showOverlayKills runs the daemon's own test with many kills.
func showOverlayKills(ctx context.Context, b *bench) error {
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestKills$", "./overlay/control", "-kills", strconv.Itoa(kills), "-within", recovery.String())
	out, err := c.CombinedOutput()
	seen := lastPart(string(out))
	if err == nil {
		seen = "nothing is left"
		for text := range strings.Lines(string(out)) {
			if _, told, ok := strings.Cut(text, "recovered within "); ok {
				seen += ", programs recovered within " + strings.TrimSpace(told)
			}
		}
	}
	b.print(line{
		what: fmt.Sprintf("kill -9 of ktsnd and of programs at any moment, %d times: descriptors, memory and paths of the daemon as before, programs send again", kills),
		seen: strings.ReplaceAll(seen, "\n", " "), bound: "nothing left, within " + recovery.String(), command: overlayCommand, pass: err == nil,
	})
	return nil
}

// showOverlayGuest holds the scheduler to the kernel's own, in a guest that has them.
func showOverlayGuest(ctx context.Context, b *bench) error {
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestTaprio$", "./test/guest")
	out, err := c.CombinedOutput()
	agree := strings.Count(string(out), "--- PASS: TestTaprio/")
	if err == nil && agree == 0 {
		err = errors.New("it was not run")
	}
	seen := fmt.Sprintf("%d agree", agree)
	if err != nil {
		seen = strings.ReplaceAll(lastPart(string(out)), "\n", " ")
	}
	const schedules = 20
	b.print(line{
		what: fmt.Sprintf("%d generated schedules, half of them with ETF: which of 24 packets leaves in which window by the kernel's taprio, in a guest, and by sched", schedules),
		seen: seen, bound: fmt.Sprintf("%d", schedules), command: overlayCommand, pass: err == nil && agree == schedules,
	})
	return nil
}
