package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

func loadCommand() *cobra.Command {
	var spec string
	var into outputs
	c := &cobra.Command{
		Use:   "load",
		Short: "Drive a workload and record every request",
		Long:  "Drive a workload in a closed or an open loop and record every request as Parquet. stdout is a summary.",
		Args:  none,
		RunE:  func(c *cobra.Command, _ []string) error { return drive(c, spec, into) },
	}
	c.Flags().StringVar(&spec, "spec", "", "load to run, as a JSON file; - is stdin")
	c.Flags().StringVar(&into.requests, "out", "", "Parquet file to write")
	c.Flags().StringVar(&into.histogram, "hdr", "", "HdrHistogram log to write as well")
	c.Flags().StringVar(&into.there, "there", "", "Parquet file of the ways to the service to write as well, of UDP")
	c.Flags().StringVar(&into.back, "back", "", "Parquet file of the ways from the service to write as well, of UDP")
	return c
}

// outputs are where the results of a load go; all but requests may be empty.
type outputs struct{ requests, histogram, there, back string }

func drive(c *cobra.Command, specName string, into outputs) error {
	if specName == "" || into.requests == "" {
		return usage("load needs --spec FILE and --out FILE.parquet")
	}
	spec, err := readSpec(c, specName)
	if err != nil {
		return err
	}
	if times := into.there != "" || into.back != ""; times && spec.Protocol != workload.UDP {
		return usage("--there and --back are of loads over %s", workload.UDP)
	}
	var got load.Result
	var began time.Time
	// Made before the load, so that a full or read-only disk does not cost a run.
	var outs results
	defer outs.discard()
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{into.histogram, func(w io.Writer) error { return load.WriteHistogram(w, got.Requests, began) }},
		{into.there, func(w io.Writer) error { return sample.WriteOneWay(w, got.There) }},
		{into.back, func(w io.Writer) error { return sample.WriteOneWay(w, got.Back) }},
		// Last, so that where it is, the others are.
		{into.requests, func(w io.Writer) error { return sample.WriteRequests(w, got.Requests) }},
	} {
		if err := outs.add(f.name, f.write); err != nil {
			return err
		}
	}
	began = time.Now()
	if got, err = load.Run(c.Context(), spec); err != nil {
		return err
	}
	if err := outs.commit(); err != nil {
		return err
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(summarise(got.Requests))
}

// results are several files of one run.
type results []pending

type pending struct {
	*whole.File
	write func(io.Writer) error
}

// add has a file be written at the end; an empty name asks for none.
func (r *results) add(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	out, err := whole.Create(name, 0o644)
	if err == nil {
		*r = append(*r, pending{out, write})
	}
	return err
}

func (r *results) commit() error {
	for _, p := range *r {
		if err := p.write(p); err != nil {
			return err
		}
		if err := p.Commit(); err != nil {
			return err
		}
	}
	return nil
}

func (r *results) discard() {
	for _, p := range *r {
		p.Discard()
	}
}

func readSpec(c *cobra.Command, name string) (load.Spec, error) {
	if name == "-" {
		return load.ReadSpec(c.InOrStdin())
	}
	f, err := os.Open(name)
	if err != nil {
		return load.Spec{}, err
	}
	defer f.Close()
	s, err := load.ReadSpec(f)
	if err != nil {
		return load.Spec{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// summary is of the requests that count, without warm-up.
type summary struct {
	N      int `json:"n"`
	Errors int `json:"errors"`
	// MedianNs of the response times without error, null where there is none.
	MedianNs *int64 `json:"median_ns"`
}

func summarise(rows []sample.Request) summary {
	var s summary
	var times []int64
	for _, r := range rows {
		switch {
		case r.Warmup:
			continue
		case r.Error != "":
			s.Errors++
		default:
			times = append(times, r.ResponseNs())
		}
		s.N++
	}
	if n := len(times); n > 0 {
		slices.Sort(times)
		median := (times[(n-1)/2] + times[n/2]) / 2
		s.MedianNs = &median
	}
	return s
}
