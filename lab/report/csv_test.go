package report_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/reporttest"
	"skerry.dev/skerry/lab/sample"
)

// table reads CSV as maps from column to field.
func table(t *testing.T, text string) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, fields := range records[1:] {
		row := map[string]string{}
		for i, f := range fields {
			row[records[0][i]] = f
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCellsAsCSV(t *testing.T) {
	in := reporttest.WAN(1, 1)
	var out bytes.Buffer
	if err := report.CellsCSV(&out, in); err != nil {
		t.Fatal(err)
	}
	rows := table(t, out.String())
	if len(rows) != len(in.Results) {
		t.Fatalf("%d rows for %d cells", len(rows), len(in.Results))
	}
	r, row := in.Results[13], rows[13]
	for column, want := range map[string]string{
		"cell": r.Cell.ID(), "scenario": "edg10", "system": "direct", "size_bytes": "100000", "connections": "kept",
		"repetitions": "10", "requests": "2000", "errors": "0", "n": "2000", "limit_ms": "11.6", "rejected": "",
	} {
		if row[column] != want {
			t.Errorf("%s: got %q, want %q", column, row[column], want)
		}
	}
	for column, want := range map[string]float64{
		"median_ms": float64(r.Summary.Times.Median) / 1e6, "median_low_ms": r.Median.Low / 1e6, "median_high_ms": r.Median.High / 1e6,
		"share_of_limit": 11.6e6 / float64(r.Summary.Times.Median), "per_second": r.Observed.Rate,
	} {
		if got, err := strconv.ParseFloat(row[column], 64); err != nil || got != want {
			t.Errorf("%s: got %q, want %v", column, row[column], want)
		}
	}
	rejected := rows[reporttest.Rejected]
	if rejected["median_ms"] != "" || rejected["n"] != "" || !strings.Contains(rejected["rejected"], "5.31ms") {
		t.Errorf("rejected cell: %v", rejected)
	}
	if silent := rows[reporttest.NoAnswer]; silent["median_ms"] != "" || silent["errors"] != "40" {
		t.Errorf("cell without an answer: %v", silent)
	}
}

func TestRequestsAsCSV(t *testing.T) {
	cell := reporttest.WAN(1, 1).Results[12].Cell
	var out bytes.Buffer
	w, err := report.NewRequestsCSV(&out)
	if err != nil {
		t.Fatal(err)
	}
	requests := []sample.Request{
		{Thread: 2, Connection: 1, Index: 3, Warmup: true, ScheduledNs: 100, SentNs: 110, FirstByteNs: 180, LastByteNs: 200, Status: 200},
		{Thread: 2, Connection: 1, Index: 4, ScheduledNs: 300, SentNs: 310, Error: "dial: \"no\",\nroute"},
	}
	if err := errors.Join(w.Write(cell, 7, requests), w.Flush()); err != nil {
		t.Fatal(err)
	}
	rows := table(t, out.String())
	for i, wants := range []map[string]string{
		{
			"cell": cell.ID(), "system": "direct", "size_bytes": "1000", "repetition": "7", "thread": "2", "connection": "1", "index": "3",
			"warmup": "true", "scheduled_ns": "100", "sent_ns": "110", "first_byte_ns": "180", "last_byte_ns": "200",
			"response_ns": "100", "status": "200", "error": "",
		},
		{"warmup": "false", "response_ns": "", "status": "0", "error": "dial: \"no\",\nroute"},
	} {
		for column, want := range wants {
			if rows[i][column] != want {
				t.Errorf("row %d, %s: got %q, want %q", i, column, rows[i][column], want)
			}
		}
	}
}

// Rows are handed on as they come, and a reader that has gone is an error.
func TestRequestsCSVStopsWhenNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := report.NewRequestsCSV(w)
	if err != nil {
		t.Fatal(err)
	}
	err = out.Write(reporttest.WAN(1, 1).Results[0].Cell, 1, make([]sample.Request, 1000))
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want that the pipe is closed", err)
	}
}
