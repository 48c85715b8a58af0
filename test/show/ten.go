package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/run"
)

const (
	tenCommand = "make show AREA=ten"
	// tenReason begins what a repetition is rejected for whose emulator was late.
	tenReason = "the emulator fell behind"
	// tenLateMost is the share of late packets up to which a direction is proven.
	tenLateMost  = 0.05
	tenDirection = 20
)

// tenFile has a client ask the head of a cluster, which asks nine workers in turn:
// ten links, and traffic on all of them. Its cells differ in how much.
const tenFile = `name: ten
topology:
  clusters:
    - {name: c1, nodes: [head, w1, w2, w3, w4, w5, w6, w7, w8, w9]}
    - {name: users, nodes: [tester]}
  service: c1/w1
  replicas: [c1/w2, c1/w3, c1/w4, c1/w5, c1/w6, c1/w7, c1/w8, c1/w9]
  client: users/tester
scenarios:
  - name: ten
    links:
      - {between: [users, c1], delay: 5ms, loss: 0.001%%%s}
      - {between: [c1/head, c1/w1], delay: 1ms}
      - {between: [c1/head, c1/w2], delay: 2.5ms, jitter: 200us}
      - {between: [c1/head, c1/w3], delay: 5ms, loss: 0.1%%}
      - {between: [c1/head, c1/w4], delay: 5ms, jitter: 500us, distribution: normal}
      - {between: [c1/head, c1/w5], delay: 10ms, rate: 1gbit}
      - {between: [c1/head, c1/w6], delay: 10ms, jitter: 1ms, distribution: pareto, unordered: true}
      - {between: [c1/head, c1/w7], delay: 20ms, rate: 100mbit}
      - {between: [c1/head, c1/w8], delay: 30ms, burst: {enter: 0.1%%, leave: 50%%}}
      - {between: [c1/head, c1/w9], delay: 50ms, duplicate: 0.1%%, reorder: 0.1%%}
systems: [ingress]
workloads: [{name: %s}]
load: {%s}
repetitions: %d
`

// tenCell is how much one cell has the links carry.
type tenCell struct {
	name, rate, workload, load string
	repetitions                int
}

// showTen runs cells of ten links by the program that a user runs them by. It holds
// that a repetition counts only where no link fell behind, and is else rejected with
// that reason: while the links carry what they can, and while one carries more.
func showTen(ctx context.Context, b *bench) error {
	for _, c := range []tenCell{
		{"200 requests/s of 10 KB", ", rate: 1gbit", "payload-echo, size: 10KB", "rate: 200/s, duration: 20s, threads: 64", 3},
		{"saturating TCP, packet by packet", "", "payload-recv, size: 64MiB", "threads: 4, iterations: 2", 1},
	} {
		tries, err := b.tenRun(ctx, c)
		if err != nil {
			return err
		}
		b.tenJudge(c, tries)
	}
	return nil
}

// tenRun gives every try of every repetition of a cell.
func (b *bench) tenRun(ctx context.Context, c tenCell) (tries []run.Repetition, err error) {
	dir, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, out := filepath.Join(dir, "ten.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, fmt.Appendf(nil, tenFile, c.rate, c.workload, c.load, c.repetitions), 0o600); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(b.agent), "skerry"), "run", file, "--out", out)
	cmd.Stdout, cmd.Stderr = &said, &said
	runErr := cmd.Run() // fails where all is rejected
	if tries, err = readTries(out); err != nil || len(tries) == 0 {
		return nil, fmt.Errorf("no repetition was tried: %w: %s", errors.Join(err, runErr), lastPart(said.String()))
	}
	return tries, nil
}

// tenJudge holds what became of each try against what the links counted in it.
func (b *bench) tenJudge(c tenCell, tries []run.Repetition) {
	var counted, behind, wrong int
	var all impair.Counters
	worst, least, reason := 0.0, uint64(1<<63), ""
	decided := map[int]bool{} // by repetition
	for _, t := range tries {
		late := 0.0
		for _, d := range t.Proof.Directions {
			all, least = all.Plus(d.Seen), min(least, d.Seen.Packets)
			late = max(late, float64(d.Seen.Late)/float64(max(d.Seen.Packets, 1)))
		}
		worst = max(worst, late)
		at := slices.IndexFunc(t.Proof.Reasons, func(r string) bool { return strings.Contains(r, tenReason) })
		switch {
		case len(t.Proof.Reasons) == 0:
			counted++
			decided[t.Repetition] = true
		case at >= 0:
			behind++
			decided[t.Repetition] = true
			reason += "; " + t.Proof.Reasons[at]
		default: // by chance, or for what the machine did: it is tried again
			reason += "; tried again: " + t.Proof.Reasons[0]
		}
		if len(t.Proof.Directions) != tenDirection || (late > tenLateMost) != (at >= 0) {
			wrong++
		}
	}
	b.print(line{
		what: fmt.Sprintf("ten links at once, traffic on all, %s: repetitions count, or are rejected for falling behind", c.name),
		seen: fmt.Sprintf("%d count, %d fell behind of %d tries; late in the worst direction %.2f %%, %d packets in the least, %d in all, lateness up to %s%s",
			counted, behind, len(tries), 100*worst, least, all.Packets, time.Duration(all.LateMaxNs).Round(time.Microsecond), reason),
		bound: fmt.Sprintf("one or the other, by %.0f %% late; packets in all %d directions", 100*tenLateMost, tenDirection),
		pass:  wrong == 0 && len(decided) == c.repetitions && least > 0, command: tenCommand,
	})
}
