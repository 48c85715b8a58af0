package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"skerry.dev/skerry/systems"
)

const (
	quickstart = "experiments/quickstart.yaml"
	// comparisons of runs that do not differ, and of runs in which one arm was
	// slowed; of the first, falseMax may be called different.
	alikeRuns, falseMax, plantedRuns = 20, 1, 10
	// slowedArm is the system whose plug-in is exchanged.
	slowedArm = "direct"
	asIs      = "0s 0"
	slowed    = "300us 0.05" // max(300 µs, 5 % of the round trip)
)

// relayed is the plug-in of slowedArm with a relay in the service's node.
const relayed = `name: direct
kind: interconnect
summary: the client's connection through a relay that may hold answers back
hosts:
  route: [client, service]
  start:
    - {at: service, run: "exec %s relay :8081 {{.Service.IP}}:{{.Service.Port}} %s", daemon: relay}
  ready:
    - {at: client, tcp: "{{.Service.IP}}:8081"}
  address: "{{.Service.IP}}:8081"
`

// compared is what 'skerry compare --json' prints, as far as it matters here.
type compared struct {
	Cells []struct {
		Cell    string `json:"cell"`
		Verdict string `json:"verdict"`
	} `json:"cells"`
}

// comparer runs the quickstart, without its claims, into folders of dir.
type comparer struct{ skerry, dir, file string }

// inFolder has an area run the quickstart into a folder that goes when it ends.
func (b *bench) inFolder(do func(c comparer) error) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := os.ReadFile(quickstart)
	if err != nil {
		return err
	}
	// Its claims fail, rightly, where an arm is slowed.
	file, _, _ := strings.Cut(string(text), "\nclaims:")
	c := comparer{skerry: filepath.Join(filepath.Dir(b.agent), "skerry"), dir: dir, file: filepath.Join(dir, "quickstart.yaml")}
	if err := os.WriteFile(c.file, []byte(file+"\n"), 0o600); err != nil {
		return err
	}
	return do(c)
}

// showAlike compares the quickstart with itself: each run with the next.
func showAlike(ctx context.Context, b *bench) error {
	return b.inFolder(func(c comparer) error { return b.alike(ctx, c) })
}

// showPlanted compares the quickstart with itself where one arm is slowed by a
// known amount.
func showPlanted(ctx context.Context, b *bench) error {
	return b.inFolder(func(c comparer) error { return b.planted(ctx, c) })
}

func (b *bench) alike(ctx context.Context, c comparer) error {
	last, err := c.run(ctx, "alike-0", "")
	if err != nil {
		return err
	}
	var alarms []string
	for i := range alikeRuns {
		next, err := c.run(ctx, fmt.Sprintf("alike-%d", i+1), "")
		if err != nil {
			return err
		}
		found, err := c.compare(ctx, last, next)
		if err != nil {
			return err
		}
		if different := found.called(); len(different) > 0 {
			alarms = append(alarms, fmt.Sprintf("run %d: %s", i+1, strings.Join(different, ", ")))
		}
		last = next
	}
	b.print(line{
		what:  fmt.Sprintf("quickstart against itself, %d comparisons, Holm at 1 %%", alikeRuns),
		seen:  fmt.Sprintf("%d called different %s", len(alarms), strings.Join(alarms, "; ")),
		bound: fmt.Sprintf("at most %d", falseMax), pass: len(alarms) <= falseMax, command: "make show AREA=alike",
	})
	return nil
}

// planted compares a run whose direct arm goes through a relay with runs in which
// that relay holds each answer back.
func (b *bench) planted(ctx context.Context, c comparer) error {
	plain, err := c.plugins("plain", asIs)
	if err != nil {
		return err
	}
	slow, err := c.plugins("slow", slowed)
	if err != nil {
		return err
	}
	before, err := c.run(ctx, "before", plain)
	if err != nil {
		return err
	}
	found, cells, arms := 0, 0, 0
	for i := range plantedRuns {
		after, err := c.run(ctx, fmt.Sprintf("after-%d", i), slow)
		if err != nil {
			return err
		}
		result, err := c.compare(ctx, before, after)
		if err != nil {
			return err
		}
		hits, of := result.slower(slowedArm)
		if cells, arms = cells+hits, arms+of; hits == of && of > 0 {
			found++
		}
	}
	b.print(line{
		what:  fmt.Sprintf("one arm slowed by max(5 %%, 300 µs), %d comparisons", plantedRuns),
		seen:  fmt.Sprintf("found in all its cells in %d runs; in %d of %d cells", found, cells, arms),
		bound: fmt.Sprintf("%d runs", plantedRuns), pass: found == plantedRuns, command: "make show AREA=planted",
	})
	return nil
}

// run runs the quickstart with the plug-ins of a folder, "" for those built in.
func (c comparer) run(ctx context.Context, name, systemsDir string) (string, error) {
	out := filepath.Join(c.dir, name)
	args := []string{"run", c.file, "--out", out}
	if systemsDir != "" {
		args = append(args, "--systems", systemsDir)
	}
	_, err := c.output(ctx, args...)
	return out, err
}

// compare runs skerry compare, which fails where it finds a slow-down.
func (c comparer) compare(ctx context.Context, before, after string) (compared, error) {
	var found compared
	text, err := c.output(ctx, "compare", before, after, "--alpha", "1%", "--margin", "0%", "--json")
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() == 1 && len(text) > 0 {
		err = nil
	}
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(text, &found)
}

func (c comparer) output(ctx context.Context, args ...string) ([]byte, error) {
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, c.skerry, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	// Interrupted, it takes its lab down.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("skerry %s: %w: %s", args[0], err, lastPart(problems.String()))
	}
	return out.Bytes(), nil
}

// plugins is a folder with the built-in plug-ins, slowedArm's exchanged.
func (c comparer) plugins(name, hold string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.dir, name)
	if err := os.CopyFS(dir, fs.FS(systems.FS)); err != nil {
		return "", err
	}
	text := fmt.Sprintf(relayed, self, hold)
	return dir, os.WriteFile(filepath.Join(dir, slowedArm, "system.yaml"), []byte(text), 0o600)
}

// called lists the cells that are called different, with how.
func (c compared) called() []string {
	var all []string
	for _, cell := range c.Cells {
		if cell.Verdict == "slower" || cell.Verdict == "faster" || cell.Verdict == "more errors" {
			all = append(all, cell.Cell+" "+cell.Verdict)
		}
	}
	return all
}

// slower counts the cells of a system that are called slower, and all of them.
func (c compared) slower(system string) (hits, of int) {
	for _, cell := range c.Cells {
		if !strings.Contains(cell.Cell, ", "+system+",") { // SCENARIO, SYSTEM, SIZE
			continue
		}
		of++
		if cell.Verdict == "slower" {
			hits++
		}
	}
	return hits, of
}
