package oneway

import (
	"slices"
	"testing"

	"skerry.dev/skerry/lab/sample"
)

func TestPacketsAsRequests(t *testing.T) {
	got := Requests([]sample.OneWay{
		{Flow: 0, Sequence: 0},
		{Flow: 0, Sequence: 1, SentNs: 1100, ReceivedNs: 1110, ReadNs: 1120},
		{Flow: 2, Sequence: 0},
	}, 100, -1000)
	want := []sample.Request{
		{Thread: 0, Connection: 1, Index: 1, ScheduledNs: 0, Error: ErrorLost},
		{Thread: 0, Connection: 1, Index: 2, ScheduledNs: 100, FirstByteNs: 110, LastByteNs: 120},
		{Thread: 2, Connection: 1, Index: 1, Error: ErrorLost},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
