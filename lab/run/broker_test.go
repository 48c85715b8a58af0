package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/lab/workload/broker"
)

// withBrokers has the example run brokers over a link of that delay, each way.
func withBrokers(t *testing.T, o *Options, delay time.Duration, names ...string) {
	t.Helper()
	o.Brokers = map[string]broker.Program{}
	o.Experiment.Scenarios[0].Links = []experiment.Link{
		{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(delay)}},
	}
	o.Experiment.Repetitions, o.Experiment.Objectives, o.Experiment.Workloads = 1, nil, nil
	for _, name := range names {
		program, err := broker.Find(t.Context(), name)
		if err != nil {
			t.Skip(err)
		}
		o.Brokers[name] = program
		o.Experiment.Workloads = append(o.Experiment.Workloads, experiment.Workload{Name: name, Size: []quantity.Size{1000}})
	}
}

// TestBrokers publishes over 5 ms each way. A message is back after one round trip,
// whatever acknowledgements travel beside it, as an echo over TCP is; a connection
// takes a round trip for each that broker and client agree in before. Beside the
// bounds of the link, the brokers are held to the echo of the same run.
func TestBrokers(t *testing.T) {
	const delay = 5 * time.Millisecond
	o, _ := realRun(t, func(o *Options) {
		withBrokers(t, o, delay, broker.Names()...)
		o.Experiment.Workloads = append(o.Experiment.Workloads, experiment.Workload{Name: "payload-echo", Size: []quantity.Size{1000}})
		o.Experiment.Load = experiment.Load{Protocol: []string{"tcp"}, Threads: []int{2}, Iterations: 30, Warmup: 2}
	})
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	echo := input.Results[len(input.Results)-1].Summary.Times.Median
	for i, dial := range []int{3, 7, 1} {
		r := input.Results[i]
		if s := r.Summary; s.N < 58 || s.Errors != 0 || s.Times.Median < 2*delay-time.Millisecond/10 || s.Times.Median > 3*echo/2 {
			t.Errorf("%s: %+v, an echo takes %s", r.Cell, s, echo)
		}
		if least := time.Duration(1+dial) * 2 * delay; r.Oracle.First != least || r.Oracle.RTT != 2*delay || r.Oracle.Limit != 2*delay {
			t.Errorf("%s: predicted %+v", r.Cell, r.Oracle)
		}
		if len(r.Rejected) > 0 || len(r.Proofs) == 0 || r.HopMap.String() != "c2/head → c1/head [5ms]" {
			t.Errorf("%s: rejected %q by %d proofs, by way of %s", r.Cell, r.Rejected, len(r.Proofs), r.HopMap)
		}
		turn := Turn{Cell: r.Cell, Repetition: 1}
		requests, err := readSamples(filepath.Join(store{o.Dir}.turnDir(turn), samplesFile))
		if err != nil {
			t.Fatal(err)
		}
		first := time.Duration(requests[0].ResponseNs())
		if least := time.Duration(1+dial) * 2 * delay; first < least-time.Millisecond/10 || first > 2*least {
			t.Errorf("%s: request 1 took %s, of %d round trips", r.Cell, first, 1+dial)
		}
		checkBroker(t, o, turn)
	}
}

// checkBroker looks at what a broker has left.
func checkBroker(t *testing.T, o Options, turn Turn) {
	t.Helper()
	program, isBroker := o.Brokers[turn.Cell.Workload]
	folder := filepath.Join(store{o.Dir}.turnDir(turn), serviceName)
	kept, err := os.ReadDir(folder)
	if !isBroker {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s left %v", turn.Cell, kept)
		}
		return
	}
	if err != nil || len(kept) == 0 || slices.ContainsFunc(kept, func(e os.DirEntry) bool { return e.IsDir() }) {
		t.Errorf("%s left %v, %v: want its configuration alone", turn.Cell, kept, err)
	}
	repetition, err := store{o.Dir}.last(turn)
	if err != nil || len(repetition.Deaths) > 0 || repetition.Cell.Protocol != broker.Protocol(turn.Cell.Workload) {
		t.Errorf("%+v, %v", repetition, err)
	}
	if i := slices.IndexFunc(repetition.Uses, func(u host.Use) bool { return u.Name == serviceName }); i < 0 || repetition.Uses[i].CPU <= 0 {
		t.Errorf("%s has used %+v", turn.Cell, repetition.Uses)
	}
	record, err := ReadRecord(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(record.Programs, func(p Program) bool { return p.Name == program.Name }); i < 0 || record.Programs[i].Version != program.Version {
		t.Errorf("programs %+v do not tell of %+v", record.Programs, program)
	}
}

// A broker that is killed while the load runs leaves rows that say so, and a
// repetition that counts: what becomes of clients may be the question.
func TestBrokerKilled(t *testing.T) {
	killed := make(chan error, 1)
	killing, over := context.WithCancel(t.Context())
	defer over()
	o, said := realRun(t, func(o *Options) {
		withBrokers(t, o, time.Millisecond, broker.Mosquitto)
		o.Experiment.Load = experiment.Load{
			Rate: []quantity.Frequency{200}, Duration: quantity.Duration(3 * time.Second), Threads: []int{4},
		}
		o.LabName += "-killed"
		go func() { killed <- killUnderLoad(killing, o.LabName) }()
	})
	over()
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s := input.Results[0].Summary
	if s.Requests != 600 || s.N == 0 || s.Errors == 0 || s.FirstN == 0 || s.N+s.Errors != s.Requests {
		t.Errorf("%+v", s)
	}
	for _, class := range s.ErrorClasses {
		if !slices.Contains([]string{"closed", "reset", "dial refused"}, class.Name) {
			t.Errorf("%d errors of the class %q", class.Count, class.Name)
		}
	}
	const how = "service at c1/head ended while the load ran: signal: killed"
	if !slices.ContainsFunc(said.said, func(text string) bool { return strings.HasSuffix(text, ", repetition 1: "+how) }) {
		t.Errorf("the user was told %q", said.said)
	}
	if notes := input.Results[0].Oracle.Notes; !slices.Contains(notes, "repetition 1: "+how) {
		t.Errorf("the report notes %q", notes)
	}
}

// killUnderLoad ends the service of a lab a while after each of its loads has begun, of
// which there are more where a try is rejected, until the context ends.
func killUnderLoad(ctx context.Context, name string) (err error) {
	seen := false
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		lab, failed := host.Open(name)
		if failed != nil {
			continue // not up yet
		}
		running, failed := lab.Running()
		loads := failed == nil && slices.ContainsFunc(running, func(r host.Running) bool { return r.Name == "load" })
		if seen == loads {
			continue
		}
		if seen = loads; !loads {
			continue
		}
		time.Sleep(300 * time.Millisecond)
		_, failed = lab.Inject(ctx, host.Fault{Kind: host.Kill, Node: "c1/head", Process: "mosquitto"})
		err = errors.Join(err, failed)
	}
	return err
}

// A broker that does not start says why.
func TestBrokerError(t *testing.T) {
	e := &BrokerError{Broker: "mosquitto", Err: errors.New("exit status 1"), Said: lastLines("one\nError: Address already in use\n")}
	if got, want := e.Error(), "mosquitto has ended: exit status 1: one; Error: Address already in use"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := (&BrokerError{Broker: "rabbitmq"}); e.Error() != "rabbitmq has ended" {
		t.Errorf("got %q", e)
	}
}
