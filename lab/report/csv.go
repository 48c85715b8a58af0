package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// conditionHeader names what a cell is, in every CSV.
func conditionHeader() []string {
	return []string{
		"cell", "scenario", "system", "workload", "size_bytes", "time_ms", "memory_bytes", "threads", "ratio", "think_ms",
		"rate_per_s", "arrivals", "tool", "protocol", "connections",
	}
}

func conditionFields(c experiment.Cell) []string {
	return []string{
		c.ID(), c.Scenario.Name, c.System, c.Workload, strconv.FormatInt(int64(c.Size), 10), decimal(inMs(c.Time.Std())),
		strconv.FormatInt(int64(c.Memory), 10), strconv.Itoa(c.Threads), c.Ratio, decimal(inMs(c.Think.Std())),
		decimal(float64(c.Rate)), c.Arrivals, c.SentBy(), c.Speaks(), c.Connection,
	}
}

// CellsCSV writes a row for each cell: what the table shows, times in ms at full
// precision. A figure that a cell does not have is an empty field.
func CellsCSV(w io.Writer, in Input) error {
	out := csv.NewWriter(w)
	header := append(conditionHeader(), "repetitions", "requests", "errors", "n",
		"median_ms", "median_low_ms", "median_high_ms", "p90_ms", "p99_ms", "max_ms", "mean_ms", "iqr_mean_ms", "first_ms",
		"limit_ms", "share_of_limit", "per_second", "rejected", "not_runnable")
	if err := out.Write(header); err != nil {
		return fmt.Errorf("write cells: %w", err)
	}
	for _, r := range in.Results {
		if err := out.Write(append(conditionFields(r.Cell), cellFields(r)...)); err != nil {
			return fmt.Errorf("write cells: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write cells: %w", err)
	}
	return nil
}

func cellFields(r Result) []string {
	fields := make([]string, 0, 18)
	add := func(known bool, v float64) {
		text := ""
		if known {
			text = decimal(v)
		}
		fields = append(fields, text)
	}
	s := r.Summary
	counted := r.Rejected == ""
	measured := r.Missing() == ""
	for _, n := range []int{len(r.PerRepetition), s.Requests, s.Errors, s.N} {
		add(counted, float64(n))
	}
	add(measured, inMs(s.Times.Median))
	interval := measured && hasInterval(r.Median)
	add(interval, r.Median.Low/1e6)
	add(interval, r.Median.High/1e6)
	t := s.Times
	for _, v := range []float64{inMs(t.P90), inMs(t.P99), inMs(t.Max), inMs(t.Mean)} {
		add(measured, v)
	}
	add(measured && !r.Total, inMs(t.IQRMean))
	add(counted && s.FirstN > 0, inMs(s.First))
	add(r.Oracle.Limit > 0, inMs(r.Oracle.Limit))
	share, ok := r.shareOfLimit()
	add(ok, share)
	add(measured && r.Observed.Rate > 0, r.Observed.Rate)
	return append(fields, r.Rejected, r.Lacks)
}

// decimal is the shortest text that reads back as the same number.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// RequestsCSV writes requests as CSV, a row for each, as they come: it holds
// none of them. Make it with NewRequestsCSV.
type RequestsCSV struct {
	out    *csv.Writer
	fields []string
}

// NewRequestsCSV writes the header.
func NewRequestsCSV(w io.Writer) (*RequestsCSV, error) {
	r := &RequestsCSV{out: csv.NewWriter(w)}
	header := append(conditionHeader(), "repetition", "thread", "connection", "index", "warmup",
		"scheduled_ns", "sent_ns", "first_byte_ns", "last_byte_ns", "response_ns", "status", "error")
	if err := r.out.Write(header); err != nil {
		return nil, fmt.Errorf("write requests: %w", err)
	}
	return r, nil
}

// Write writes requests of one repetition of a cell. The response time is empty
// for one that failed.
func (r *RequestsCSV) Write(c experiment.Cell, repetition int, requests []sample.Request) error {
	condition := conditionFields(c)
	for _, q := range requests {
		response := ""
		if q.Error == "" {
			response = strconv.FormatInt(q.ResponseNs(), 10)
		}
		r.fields = append(append(r.fields[:0], condition...),
			strconv.Itoa(repetition), strconv.Itoa(int(q.Thread)), strconv.Itoa(int(q.Connection)), strconv.Itoa(int(q.Index)),
			strconv.FormatBool(q.Warmup), strconv.FormatInt(q.ScheduledNs, 10), strconv.FormatInt(q.SentNs, 10),
			strconv.FormatInt(q.FirstByteNs, 10), strconv.FormatInt(q.LastByteNs, 10), response,
			strconv.Itoa(int(q.Status)), q.Error)
		if err := r.out.Write(r.fields); err != nil {
			return fmt.Errorf("write requests: %w", err)
		}
	}
	return nil
}

// Flush writes what is still in a buffer.
func (r *RequestsCSV) Flush() error {
	r.out.Flush()
	if err := r.out.Error(); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	return nil
}
