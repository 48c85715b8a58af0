package run

import (
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
)

// Where nobody scales nothing is followed, and nothing recorded.
func TestNobodyScales(t *testing.T) {
	r := &runner{Options: Options{Experiment: &experiment.Experiment{Substrate: experiment.SubstrateKubernetes}}}
	if s := r.followScale(t.Context(), &attempt{}); s != nil {
		t.Errorf("followed by %+v", s)
	}
	if scale, err := (*scaler)(nil).end(); scale != nil || err != nil {
		t.Errorf("recorded %v, %v", scale, err)
	}
	if autoscaled(nil) != nil {
		t.Error("a workload is scaled by nothing")
	}
	// What the file leaves out, clusters are told.
	want := cluster.Autoscale{Min: 1, Max: 4, Percent: 50, MilliCPU: 100}
	if got := autoscaled(&experiment.Autoscale{Max: 4, CPU: 50}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

// Each repetition's scale is shown, and that the way of a request is not all of them.
func TestScaleIsCollected(t *testing.T) {
	c := &collection{}
	requests := []sample.Request{{Connection: 1, Index: 2, LastByteNs: 1e6, Status: 200}}
	c.add(Repetition{Repetition: 1}, requests)
	if len(c.Scales) != 0 || len(c.notes) != 0 {
		t.Errorf("a fixed workload has the scales %v and notes %v", c.Scales, c.notes)
	}
	for n := 2; n <= 3; n++ {
		c.add(Repetition{Repetition: n, Scale: []Scale{{Pods: 1}, {AtNs: 17e9, Pods: n}}}, requests)
	}
	want := []report.Scaled{
		{Repetition: 2, Scale: []report.Scale{{Pods: 1}, {At: 17 * time.Second, Pods: 2}}},
		{Repetition: 3, Scale: []report.Scale{{Pods: 1}, {At: 17 * time.Second, Pods: 3}}},
	}
	if got := c.result().Scales; !reflect.DeepEqual(got, want) || len(c.notes) != 1 {
		t.Errorf("got %v with the notes %v, want %v", got, c.notes, want)
	}
}
