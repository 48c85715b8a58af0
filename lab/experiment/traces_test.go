package experiment_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair/recording"
)

// withScenario reads an experiment of two clusters, in a file called f, whose one
// scenario is given from its ninth line on.
func withScenario(t *testing.T, scenario string) *experiment.Experiment {
	t.Helper()
	read, err := experiment.Read("f", []byte(`name: given
topology:
  clusters:
    - {name: c1, nodes: [head]}
    - {name: c2, nodes: [head]}
  service: c1/head
  client: c2/head
scenarios:
`+scenario+`systems: [direct]
workloads: [{name: hello-world}]
load: {iterations: 10}
repetitions: 2
`))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

const traced = `  - name: radio
    links:
      - {from: c1, to: c2, trace: lte}
      - {from: c2, to: c1, delay: 1ms, then: [{trace: up.mahi}]}
    timeline:
      - {at: 1s, from: c1, to: c2, trace: gone}
`

func TestResolveTraces(t *testing.T) {
	read := withScenario(t, traced)
	err := read.ResolveTraces(func(name string) (string, error) {
		if name == "gone" {
			return "", errors.New("there is no file gone")
		}
		return "/found/" + name, nil
	})
	if err == nil || !strings.Contains(err.Error(), "f:14:43: there is no file gone\nhint: name lte, 5g or a file") {
		t.Errorf("got %v", err)
	}
	links := read.Scenarios[0].Links
	if links[0].Trace != "/found/lte" || links[1].Then[0].Trace != "/found/up.mahi" || links[1].Trace != "" {
		t.Errorf("links %+v", links)
	}
}

const recorded = `  - name: measured
    links:
      - {from: c1, to: c2, distribution: wan.csv}
      - {from: c2, to: c1, delay: 1ms, then: [{delay: 5ms, jitter: 2ms, distribution: ./wan}]}
    timeline:
      - {at: 1s, from: c1, to: c2, distribution: gone.csv}
      - {at: 2s, from: c1, to: c2, delay: 60s, distribution: wan.csv}
`

func TestResolveRecordings(t *testing.T) {
	read := withScenario(t, recorded)
	find := func(name string) (string, recording.Recording, error) {
		if name == "gone.csv" {
			return "", recording.Recording{}, errors.New("there is no file gone.csv")
		}
		r, err := recording.Read(name, []byte("2\n4\n"))
		return "/found/" + name, r, err
	}
	err := read.ResolveRecordings(find)
	for _, want := range []string{
		"f:14:50: there is no file gone.csv\nhint: name uniform, normal, pareto or a file, from the folder of this one",
		"f:15:43: delay 1m0.003s is too long\nhint: write at most 1m0s",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	first, second := read.Scenarios[0].Links[0], read.Scenarios[0].Links[1]
	if first.String() != "3ms ±1ms" || first.Table == nil || first.Distribution != "/found/wan.csv" {
		t.Errorf("as measured it is %s of %s", first.Impairment, first.Distribution)
	}
	if then := second.Then[0]; then.String() != "5ms ±2ms" || then.Table == nil || second.Table != nil {
		t.Errorf("scaled it is %s", then)
	}
}

func TestImpairments(t *testing.T) {
	read := withScenario(t, recorded)
	var places []string
	for at, i := range read.Impairments() {
		if places = append(places, at); i.Jitter > 0 {
			break
		}
	}
	want := []string{"scenarios[0].links[0]", "scenarios[0].links[1]", "scenarios[0].links[1].then[0]"}
	if !slices.Equal(places, want) {
		t.Errorf("up to the jitter there are %q, want %q", places, want)
	}
}
