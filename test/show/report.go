package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

// The run that is reported: cells times repetitions times requests.
const (
	reportCells       = 20
	reportRepetitions = 10
	reportRequests    = 50_000
)

// showReport makes up a run of ten million requests and has skerry report it.
func showReport(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := makeUp(dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(b.agent), "skerry"), "report", dir)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	took := time.Since(began)
	page, err := os.Stat(filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	const mib = 1 << 20
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10 // as on Linux
	for _, l := range []struct {
		what             string
		seen, bound, per float64
		unit             string
	}{
		{"time", took.Seconds(), 30, 1, "s"}, {"peak memory", float64(memory), 1 << 30, mib, "MiB"}, {"page", float64(page.Size()), 5 * mib, mib, "MiB"},
	} {
		b.print(line{
			what: fmt.Sprintf("report of %d requests: %s", reportCells*reportRepetitions*reportRequests, l.what),
			seen: fmt.Sprintf("%.3g %s", l.seen/l.per, l.unit), bound: fmt.Sprintf("%.4g %s", l.bound/l.per, l.unit),
			pass: l.seen <= l.bound, command: "make show AREA=report",
		})
	}
	return nil
}

// makeUp writes a run directory whose response times are the round trip with a
// tail.
func makeUp(dir string) error {
	e := &experiment.Experiment{
		Name: "made-up",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}, {Name: "c2", Nodes: []string{"head"}}},
			Service:  "c1/head", Client: "c2/head",
		},
		Systems: []string{"one", "two"}, Workloads: []experiment.Workload{{Name: "hello-world"}},
		Load: experiment.Load{Iterations: reportRequests}, Repetitions: reportRepetitions,
	}
	for i := range reportCells / len(e.Systems) {
		e.Scenarios = append(e.Scenarios, experiment.Scenario{
			Name: fmt.Sprintf("edg%d", i+1), Links: []experiment.Link{{
				Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(time.Duration(i+1) * time.Millisecond)},
			}},
		})
	}
	began := time.Unix(1_800_000_000, 0).UTC()
	for _, cell := range e.Cells() {
		for n := 1; n <= reportRepetitions; n++ {
			folder := filepath.Join(dir, "cells", cell.ID(), strconv.Itoa(n))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			result := run.Repetition{Cell: cell, Repetition: n, Try: 1, Began: began, Ended: began, Path: []topology.Ref{"c2/head", "c1/head"}}
			err := errors.Join(writeRows(filepath.Join(folder, "requests.parquet"), cell, n), writeAsJSON(filepath.Join(folder, "repetition.json"), result))
			if err != nil {
				return err
			}
		}
	}
	return writeAsJSON(filepath.Join(dir, "run.json"), run.Record{Experiment: e, Began: began, Ended: began.Add(time.Hour), Seed: 1})
}

func writeRows(path string, cell experiment.Cell, repetition int) error {
	rtt := 2 * int64(cell.Scenario.Links[0].Delay)
	rng := rand.New(rand.NewPCG(uint64(rtt), uint64(repetition)))
	rows := make([]sample.Request, reportRequests)
	due := int64(1e9)
	for i := range rows {
		took := rtt + int64(20e3*rng.ExpFloat64()) + int64(repetition)*1000
		rows[i] = sample.Request{
			Connection: 1, Index: int32(i + 1), ScheduledNs: due, SentNs: due + 500, FirstByteNs: due + took - 500, LastByteNs: due + took, Status: 200,
		}
		due += took + 1000
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(sample.WriteRequests(f, rows), f.Close())
}

func writeAsJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
