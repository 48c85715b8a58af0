package experiment_test

import (
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
)

// brokers is an experiment of two brokers beside an echo.
func brokers(protocols ...string) *experiment.Experiment {
	size := experiment.List[quantity.Size]{100}
	return &experiment.Experiment{
		Scenarios: []experiment.Scenario{{Name: "near"}}, Systems: []string{"direct"},
		Workloads: []experiment.Workload{{Name: "mosquitto", Size: size}, {Name: "rabbitmq", Size: size}, {Name: "payload-echo", Size: size}},
		Load:      experiment.Load{Iterations: 10, Protocol: protocols},
	}
}

// A broker speaks its own protocol, once, whatever those of the load are.
func TestBrokerCells(t *testing.T) {
	e := brokers("tcp", "udp")
	var labels []string
	for _, c := range e.Cells() {
		labels = append(labels, c.String())
		if there, back := c.Bodies(); there != 100 || back != 100 {
			t.Errorf("%s: %s there and %s back", c, there, back)
		}
	}
	want := []string{
		"near/direct/mosquitto 100B 1 thread mqtt kept", "near/direct/rabbitmq 100B 1 thread amqp kept",
		"near/direct/payload-echo 100B 1 thread tcp kept", "near/direct/payload-echo 100B 1 thread udp kept",
	}
	if !slices.Equal(labels, want) {
		t.Errorf("cells %q", labels)
	}
	if got, want := e.Protocols(), []string{"mqtt", "amqp", "tcp", "udp"}; !slices.Equal(got, want) {
		t.Errorf("it speaks %q", got)
	}
	if got, want := brokers().Protocols(), []string{"mqtt", "amqp", "http/1.1"}; !slices.Equal(got, want) {
		t.Errorf("without protocols it speaks %q", got)
	}
	for protocol, want := range map[string]string{"mqtt": "mosquitto", "amqp": "rabbitmq", "tcp": "", "": ""} {
		if got, ok := experiment.Broker(protocol); got != want || ok != (want != "") {
			t.Errorf("%q is spoken by %q, %v", protocol, got, ok)
		}
	}
}

// A new connection takes a round trip for each that client and broker agree in.
func TestBrokerDials(t *testing.T) {
	e := brokers("tcp", "udp")
	for i, dial := range []int{3, 7, 1, 0} {
		kept := e.Cells()[i]
		fresh := kept
		fresh.Connection = experiment.ConnectionNew
		if kept.Dial() != dial || e.Estimate(fresh) != e.Estimate(kept) { // no delay
			t.Errorf("%s: %d round trips, %s", kept, kept.Dial(), e.Estimate(fresh))
		}
	}
	e = read(t, "testdata/quickstart.yaml")
	base := e.Cells()[len(e.Cells())-1] // edg10
	for _, c := range []struct {
		protocol string
		dial     int
	}{{experiment.ProtocolMQTT, 3}, {experiment.ProtocolAMQP, 7}, {experiment.ProtocolTCP, 1}} {
		kept := base
		kept.Protocol = c.protocol
		fresh := kept
		fresh.Connection = experiment.ConnectionNew
		trips := (base.Iterations + base.Warmup) * c.dial
		if got, want := e.Estimate(fresh)-e.Estimate(kept), time.Duration(trips)*10*time.Millisecond; (got - want).Abs() > time.Millisecond {
			t.Errorf("%s: new connections take %s more, want %s", c.protocol, got, want)
		}
	}
}

// Brokers are compared with one another by their names alone; with a workload that
// has a protocol of the load, where the claim names that.
func TestClaimsOfBrokers(t *testing.T) {
	cells := brokers("tcp").Cells()
	named := func(workload string, protocols ...string) *experiment.Selector {
		return &experiment.Selector{Workload: []string{workload}, Protocol: protocols}
	}
	for _, c := range []struct {
		of, to *experiment.Selector
		want   [][2]int
	}{
		{named("rabbitmq"), named("mosquitto"), [][2]int{{1, 0}}},
		{named("mosquitto"), named("payload-echo", "tcp"), [][2]int{{0, 2}}},
		{named("mosquitto"), named("payload-echo"), nil},
	} {
		members, _ := experiment.Claim{Kind: experiment.KindRatio, Of: c.of, To: c.to}.Members(cells)
		var got [][2]int
		for _, m := range members {
			got = append(got, [2]int{m.Points[0].Of.Cell, m.Points[0].To.Cell})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: compares %v, want %v", c.of, c.to, got, c.want)
		}
	}
}
