package experiment_test

import (
	"errors"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
)

const traced = `name: traced
topology:
  clusters:
    - {name: c1, nodes: [head]}
    - {name: c2, nodes: [head]}
  service: c1/head
  client: c2/head
scenarios:
  - name: radio
    links:
      - {from: c1, to: c2, trace: lte}
      - {from: c2, to: c1, delay: 1ms, then: [{trace: up.mahi}]}
    timeline:
      - {at: 1s, from: c1, to: c2, trace: gone}
systems: [direct]
workloads: [{name: hello-world}]
load: {iterations: 10}
repetitions: 2
`

func TestResolveTraces(t *testing.T) {
	read, err := experiment.Read("traced.yaml", []byte(traced))
	if err != nil {
		t.Fatal(err)
	}
	err = read.ResolveTraces(func(name string) (string, error) {
		if name == "gone" {
			return "", errors.New("there is no file gone")
		}
		return "/found/" + name, nil
	})
	if err == nil || !strings.Contains(err.Error(), "traced.yaml:14:43: there is no file gone\nhint: name lte, 5g or a file") {
		t.Errorf("got %v", err)
	}
	links := read.Scenarios[0].Links
	if links[0].Trace != "/found/lte" || links[1].Then[0].Trace != "/found/up.mahi" || links[1].Trace != "" {
		t.Errorf("links %+v", links)
	}
}
