package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
)

// Errors that a caller tells apart.
var (
	ErrNoRun   = errors.New("no run")
	ErrDamaged = errors.New("damaged file of a run")
)

// Collect reads a run directory and makes all figures anew from its samples.
// Repetitions that are missing are missing in the figures, too.
func Collect(dir string) (report.Input, error) {
	// Messages name the directory as the caller did.
	record, err := store{dir}.record()
	if err != nil {
		return report.Input{}, err
	}
	input := report.Input{Experiment: *record.Experiment, Provenance: provenance(record)}
	var figures []claim.Figures
	for _, cell := range record.Experiment.Cells() {
		result, err := store{dir}.collectCell(cell, record.Experiment.Repetitions)
		if err != nil {
			return report.Input{}, err
		}
		input.Results = append(input.Results, result)
		figures = append(figures, claim.Figures{Cell: cell, Summary: result.Summary})
	}
	for _, o := range record.Experiment.Objectives {
		v, err := claim.Objective(o, figures)
		if err != nil {
			return report.Input{}, err
		}
		input.Verdicts = append(input.Verdicts, report.Verdict{Objective: o, Met: v.Met, Seen: v.Seen})
	}
	return input, nil
}

func provenance(r Record) report.Provenance {
	p := report.Provenance{
		Started: r.Began, Version: r.Machine.Version, Kernel: r.Machine.Kernel, Processor: r.Machine.CPU,
		Cores: r.Machine.Cores, Seed: r.Seed,
	}
	if !r.Ended.IsZero() {
		p.Took = r.Ended.Sub(r.Began)
	}
	return p
}

// collectCell reads the repetitions of a cell that were completed.
func (s store) collectCell(cell experiment.Cell, repetitions int) (report.Result, error) {
	result := report.Result{Cell: cell}
	var all []sample.Request
	counters := map[string]impair.Counters{}
	for n := 1; n <= repetitions; n++ {
		dir := filepath.Join(s.dir, cellsDir, cell.ID(), strconv.Itoa(n))
		var repetition Repetition
		err := readJSON(filepath.Join(dir, repetitionFile), &repetition)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return result, err
		}
		requests, err := readSamples(filepath.Join(dir, samplesFile))
		if err != nil {
			return result, err
		}
		result.HopMap = cell.Scenario.HopMap(repetition.Path).String()
		result.PerRepetition = append(result.PerRepetition, measure.Summarise(requests))
		all = append(all, renumber(requests, n)...)
		for name, c := range repetition.Links {
			counters[name] = counters[name].Plus(c)
		}
	}
	result.Summary = measure.Summarise(all)
	for _, d := range cell.Scenario.Directions() {
		result.Links = append(result.Links, report.Link{
			Asked: impair.Direction{Name: string(d.From + " → " + d.To), Unit: d.Unit, Impairment: d.Impairment},
			Seen:  counters[d.Name()],
		})
	}
	return result, nil
}

// renumber keeps the threads of several repetitions apart.
func renumber(requests []sample.Request, repetition int) []sample.Request {
	for i := range requests {
		requests[i].Thread += int32(repetition) << 16
	}
	return requests
}

func readSamples(path string) ([]sample.Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	requests, err := sample.ReadRequests(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return requests, nil
}
