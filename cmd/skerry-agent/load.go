package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

func loadCommand() *cobra.Command {
	var spec, out string
	c := &cobra.Command{
		Use:   "load",
		Short: "Drive a workload and record every request",
		Long:  "Drive a workload in a closed or an open loop and record every request as Parquet. stdout is a summary.",
		Args:  none,
		RunE:  func(c *cobra.Command, _ []string) error { return drive(c, spec, out) },
	}
	c.Flags().StringVar(&spec, "spec", "", "load to run, as a JSON file; - is stdin")
	c.Flags().StringVar(&out, "out", "", "Parquet file to write")
	return c
}

func drive(c *cobra.Command, specName, outName string) error {
	if specName == "" || outName == "" {
		return usage("load needs --spec FILE and --out FILE.parquet")
	}
	spec, err := readSpec(c, specName)
	if err != nil {
		return err
	}
	// Made before the load, so that a full or read-only disk does not cost a run.
	out, err := createResult(outName)
	if err != nil {
		return err
	}
	defer out.discard()
	runtime.GOMAXPROCS(processors(spec.Threads, runtime.NumCPU()))
	rows, err := load.Run(c.Context(), spec)
	if err != nil {
		return err
	}
	if err := out.commit(func(w io.Writer) error { return sample.WriteRequests(w, rows) }); err != nil {
		return err
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(summarise(rows))
}

// processors is how many cores a load may use at once. A goroutine that becomes
// ready wakes an idle one to look for work, which costs every request: few
// threads, which wait for the network most of the time, share one.
func processors(threads, cores int) int {
	const threadsPerCore = 32
	return min(1+threads/threadsPerCore, cores)
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
