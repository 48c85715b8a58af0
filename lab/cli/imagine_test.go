package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

// imagined is an experiment of one cell without links.
func imagined() *experiment.Experiment {
	return &experiment.Experiment{
		Name: "imagined",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}, {Name: "c2", Nodes: []string{"head"}}},
			Service:  "c1/head", Client: "c2/head",
		},
		Scenarios: []experiment.Scenario{{Name: "lcl"}}, Systems: []string{"direct"},
		Workloads: []experiment.Workload{{Name: "hello-world"}}, Load: experiment.Load{Iterations: 20},
	}
}

// imagine writes a run directory of a machine with another kernel, whose every
// response takes about so long, and of each 20 requests so many have none, by default
// 0: imagine DIR REPETITIONS DURATION [FAILED].
func imagine(ts *testscript.TestScript, _ bool, args []string) {
	repetitions, err := strconv.Atoi(args[1])
	ts.Check(err)
	took, err := time.ParseDuration(args[2])
	ts.Check(err)
	failed := 0
	if len(args) > 3 {
		failed, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	e := imagined()
	e.Repetitions = repetitions
	dir, cell := ts.MkAbs(args[0]), e.Cells()[0]
	began := time.Unix(1_800_000_000, 0).UTC()
	for n := 1; n <= repetitions; n++ {
		folder := filepath.Join(dir, "cells", cell.ID(), strconv.Itoa(n))
		ts.Check(os.MkdirAll(folder, 0o755))
		var rows []sample.Request
		for i := range int64(20) {
			due := 1e9 + i*1e8
			// Repetitions and requests differ by a few per cent.
			ns := took.Nanoseconds() * (1000 + int64(n*7%11) + i%5) / 1000
			rows = append(rows, sample.Request{
				Connection: 1, Index: int32(i + 1), ScheduledNs: due, SentNs: due + 1, FirstByteNs: due + ns - 1, LastByteNs: due + ns, Status: 200,
			})
			if int(i) >= 20-failed {
				rows[i].FirstByteNs, rows[i].LastByteNs, rows[i].Status, rows[i].Error = 0, 0, 0, "timeout"
			}
		}
		f, err := os.Create(filepath.Join(folder, "requests.parquet"))
		ts.Check(err)
		ts.Check(errors.Join(sample.WriteRequests(f, rows), f.Close()))
		keep(ts, filepath.Join(folder, "repetition.json"), run.Repetition{
			Cell: cell, Repetition: n, Try: 1, Began: began, Ended: began, Path: []topology.Ref{"c2/head", "c1/head"},
		})
	}
	keep(ts, filepath.Join(dir, "run.json"), run.Record{
		Experiment: e, Began: began, Ended: began.Add(time.Minute), Seed: 1, Machine: run.Machine{Kernel: "Linux " + args[2]},
	})
}

func keep(ts *testscript.TestScript, path string, value any) {
	text, err := json.Marshal(value)
	ts.Check(err)
	ts.Check(os.WriteFile(path, text, 0o644))
}
