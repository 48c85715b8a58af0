package experiment_test

import (
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

const destinations = `name: destinations
topology:
  clusters:
    - {name: c1, nodes: [head, one, two]}
    - {name: c2, nodes: [head, one]}
    - {name: c3, nodes: [head]}
  service: c1/head
  client: c2/head
scenarios:
  - name: each-its-own
    links:
      - {between: [c1/head, c1/one], delay: 2ms}
      - {between: [c1/head, c1/two], delay: 4ms}
      - {between: [c1, c2], delay: 10ms}
      - {from: c1/head, to: c2/head, delay: 6ms}
      - {between: [c1/one, c2/one], delay: 0}
      - {from: c1, to: c3, delay: 20ms}
systems: [direct]
workloads: [{name: hello-world}]
load: {iterations: 10}
repetitions: 2
`

// Every destination has the link that names it best, and one direction says
// nothing of the other.
func TestEachDestinationHasItsLink(t *testing.T) {
	e, err := experiment.Read("destinations.yaml", []byte(destinations))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"c1/head", "c1/one", "c1/head → c1/one [2ms]"},
		{"c1/two", "c1/head", "c1/two → c1/head [4ms]"},
		{"c1/one", "c1/two", "c1/one → c1/two"},
		{"c1/two", "c2/one", "c1/two → c2/one [10ms]"},
		{"c1/head", "c2/head", "c1/head → c2/head [6ms]"},
		{"c2/head", "c1/head", "c2/head → c1/head [10ms]"},
		{"c1/head", "c2/one", "c1/head → c2/one [10ms]"},
		{"c1/one", "c2/one", "c1/one → c2/one"},
		{"c2/one", "c1/one", "c2/one → c1/one"},
		{"c1/one", "c3/head", "c1/one → c3/head [20ms]"},
		{"c3/head", "c1/one", "c3/head → c1/one"},
		{"c2/one", "c3/head", "c2/one → c3/head"},
	} {
		if got := e.Scenarios[0].HopMap([]topology.Ref{topology.Ref(c.from), topology.Ref(c.to)}).String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// What is crossed inside of a node comes behind the link that leads there.
func TestWithinNodes(t *testing.T) {
	e, err := experiment.Read("destinations.yaml", []byte(destinations))
	if err != nil {
		t.Fatal(err)
	}
	way := e.Scenarios[0].HopMap([]topology.Ref{"c2/head", "c1/head", "c1/one"})
	way.Within = map[topology.Ref][]string{"c2/head": {experiment.Pod}, "c1/one": {experiment.KubeProxy, experiment.Pod}}
	if got, want := way.String(), "c2/head pod → c1/head [10ms] → c1/one [2ms] kube-proxy → pod"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// On kubernetes, too, several nodes may serve; pods take longer to start.
func TestReplicasOnKubernetes(t *testing.T) {
	text := strings.Replace(destinations, "  client:", "  replicas: [c1/one, c2/one]\n  client:", 1)
	hosts, err := experiment.Read("hosts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := experiment.Read("pods.yaml", []byte("substrate: kubernetes\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	one, other := hosts.Cells()[0], pods.Cells()[0]
	if one.ID() != other.ID() {
		t.Errorf("the cell is %s on hosts and %s on kubernetes: runs could not be compared", one.ID(), other.ID())
	}
	if more := pods.Estimate(other) - hosts.Estimate(one); more < time.Second {
		t.Errorf("pods are estimated to take %s more", more)
	}
}
