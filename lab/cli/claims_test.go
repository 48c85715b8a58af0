package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

const plantedFile = "../claim/testdata/planted.yaml"

// TestPlantedClaims writes a run directory as a run would leave it, with samples
// that make each claim of lab/claim/testdata/planted.yaml true, false or open,
// and reads the verdicts from 'skerry report'.
func TestPlantedClaims(t *testing.T) {
	data, err := os.ReadFile(plantedFile)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Read(plantedFile, data)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plantRun(t, dir, e)
	cmd := exec.Command(filepath.Join(bin, "skerry"), "report", "--json", dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("claims fail, and the exit status is not 1: %v\n%s", err, &stderr)
	}
	var report struct {
		Claims []struct{ Name, Kind, Result, Effect, Why string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"true": "holds", "false": "fails", "open": "inconclusive"}
	var failing []string
	right := 0
	for _, c := range report.Claims {
		truth, _, _ := strings.Cut(c.Name, "-")
		if c.Result != want[truth] {
			t.Errorf("%s %s: %s %s; %s", c.Kind, c.Name, c.Result, c.Effect, c.Why)
			continue
		}
		right++
		if truth == "false" {
			failing = append(failing, c.Name)
		}
	}
	if right != 30 {
		t.Errorf("%d of %d verdicts are right, want 30", right, len(report.Claims))
	}
	first, _, _ := strings.Cut(stderr.String(), "\n")
	if want := "skerry: error: a claim fails: " + strings.Join(failing, ", "); first != want {
		t.Errorf("stderr begins\n%s\nwant\n%s", first, want)
	}
}

// plantRun writes run.json and the repetitions of every cell.
func plantRun(t *testing.T, dir string, e *experiment.Experiment) {
	t.Helper()
	began := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	writeJSON(t, filepath.Join(dir, "run.json"), run.Record{Experiment: e, Began: began, Ended: began.Add(time.Minute), Seed: 1})
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range e.Cells() {
		for n := 1; n <= e.Repetitions; n++ {
			path := filepath.Join(dir, "cells", c.ID(), fmt.Sprint(n))
			writeJSON(t, filepath.Join(path, "repetition.json"), run.Repetition{
				Cell: c, Repetition: n, Began: began, Ended: began, Path: []topology.Ref{e.Topology.Client, e.Topology.Service},
			})
			f, err := os.Create(filepath.Join(path, "requests.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(sample.WriteRequests(f, plantRequests(c, rng)), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// plantRequests is a closed loop of one thread on one connection, its medians
// as planted.yaml says: repetitions differ by 1 %, requests have a heavy right
// tail, request 1 takes three times as long, one in 50 fails.
func plantRequests(c experiment.Cell, rng *rand.Rand) []sample.Request {
	rtt := 2 * c.Scenario.Links[0].Delay.Std().Seconds() * 1e9
	size := float64(c.Size)
	median := 1e6 + rtt + 20*size
	switch c.System {
	case "b":
		median *= 1.1
	case "c":
		median = 5e6 + 0.8*rtt + 10*size
	}
	median *= math.Exp(0.01 * rng.NormFloat64())
	requests := make([]sample.Request, c.Iterations)
	now := int64(1e9)
	for i := range requests {
		took := median * (1 + 0.02*(math.Pow(1-rng.Float64(), -0.4)-math.Pow(0.5, -0.4)))
		if i == 0 {
			took *= 3
		}
		r := sample.Request{Connection: 1, Index: int32(i + 1), ScheduledNs: now, SentNs: now, Status: 200}
		now += int64(took)
		r.FirstByteNs, r.LastByteNs = now, now
		if i > 0 && rng.Float64() < 0.02 {
			r.Status, r.Error = 503, "status 503"
		}
		requests[i] = r
	}
	return requests
}
