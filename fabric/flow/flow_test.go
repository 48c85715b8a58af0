package flow_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

var begin = time.Date(2026, 11, 21, 3, 0, 0, 5, time.UTC)

func record(direction flow.Direction, from string, verdict flow.Verdict, by string) *flow.Record {
	return &flow.Record{
		Begin: begin, Direction: direction, Peer: "c1", Gateway: "198.51.100.1:4443", Cluster: "c1",
		Service: transport.Target{Namespace: "shop", Name: "web", Port: 80, Protocol: transport.TCP},
		From:    policy.Attributes{policy.Cluster: from, policy.Gateway: "g1"}, Client: "10.2.0.9:41234",
		Verdict: verdict, Policy: by, ToServiceBytes: 60, ToClientBytes: 1 << 20,
		Timings: flow.Timings{OpenNs: 1, FirstByteNs: 2, TotalNs: 3},
	}
}

// line is the record of a flow as it stays.
const line = `{"begin":"2026-11-21T03:00:00.000000005Z","direction":"import","peer":"c1","gateway":"198.51.100.1:4443","cluster":"c1",` +
	`"service":{"namespace":"shop","name":"web","port":80,"protocol":"tcp"},"from":{"cluster":"c2","gateway":"g1"},"client":"10.2.0.9:41234",` +
	`"verdict":"allowed","policy":"p","toServiceBytes":60,"toClientBytes":1048576,"openNs":1,"firstByteNs":2,"totalNs":3}` + "\n"

func TestRecord(t *testing.T) {
	want := record(flow.Import, "c2", flow.Allowed, "p")
	text, err := want.Append(nil)
	if err != nil || string(text) != line {
		t.Errorf("%v, got\n%s", err, text)
	}
	var got []*flow.Record
	for r, err := range flow.Read(strings.NewReader(line + line + line[:40])) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got %d, %+v", len(got), got)
	}
}

// What is no record is told with its line.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"peer"`, `"pear"`, `line 2: not a record of a flow: json: unknown field "pear"`},
		{`"import"`, `"sideways"`, `the direction "sideways"`},
		{`"allowed"`, `"maybe"`, `the verdict "maybe"`},
		{`"totalNs":3`, `"totalNs":-3`, "a negative number"},
		{`"begin":"2026-11-21T03:00:00.000000005Z",`, "", "it has no begin"},
		{"}\n", "} {}\n", "something follows it"},
		{`"10.2`, `"` + strings.Repeat("x", 128<<10), "longer than 131072 bytes"},
	} {
		var err error
		for _, wrong := range flow.Read(strings.NewReader(line + strings.Replace(line, c.old, c.new, 1))) {
			err = wrong
		}
		if !errors.Is(err, flow.ErrRecord) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// Whatever is read as a record is written as one that reads the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte(strings.Replace(line, "c2", "\\u001b[2J", 1)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := flow.Decode(data)
		if err != nil {
			return
		}
		text, err := r.Append(nil)
		if err != nil {
			return // a year that RFC 3339 has no form for
		}
		again, err := flow.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := again.Append(nil); err != nil || !bytes.Equal(twice, text) {
			t.Errorf("%v: %s\nbecomes %s", err, text, twice)
		}
		flow.Compare(policy.Compile(nil), time.Time{}).Add(r)
	})
}

// Flows that other policies would decide otherwise are grouped by who called what, and
// say which policies decide.
func TestCompare(t *testing.T) {
	is := func(key, value string) []policy.Selector {
		return []policy.Selector{{{Key: key, Operator: policy.In, Values: []string{value}}}}
	}
	c := flow.Compare(policy.Compile([]policy.Policy{
		{Name: "c3-too", From: is(policy.Cluster, "c3"), To: is(policy.Service, "web")},
		{Name: "quarantine", Deny: true, From: is(policy.Cluster, "c4"), To: is(policy.Cluster, "c1")},
	}), begin)
	early := record(flow.Import, "c2", flow.Allowed, "p")
	early.Begin = begin.Add(-1)
	unasked := record(flow.Export, "c2", flow.Refused, "")
	for _, r := range []*flow.Record{
		early, unasked,
		record(flow.Import, "c2", flow.Allowed, "p"), record(flow.Import, "c2", flow.Broken, "p"),
		record(flow.Export, "c2", flow.Refused, "p"),
		record(flow.Import, "c3", flow.Allowed, "p"), record(flow.Import, "c3", flow.Denied, ""),
		record(flow.Import, "c4", flow.Denied, "no"), record(flow.Import, "c4", flow.Allowed, "p"),
		record(flow.Import, "c\x1b[2J", flow.Allowed, "p"),
	} {
		c.Add(r)
	}
	var got []string
	for _, one := range c.Changes() {
		got = append(got, fmt.Sprintln(one.Flows, one.Direction, one.Cluster, one.Service, one.From+":", one.Was+",", one.Would))
	}
	want := `2 import c1 shop/web:80 cluster=c2,gateway=g1: allowed by p, denied: no policy selects it
1 export c1 shop/web:80 cluster=c2,gateway=g1: allowed by p, denied: no policy selects it
1 import c1 shop/web:80 "cluster=c\x1b[2J",gateway=g1: allowed by p, denied: no policy selects it
1 import c1 shop/web:80 cluster=c3,gateway=g1: denied: no policy selects it, allowed by c3-too
1 import c1 shop/web:80 cluster=c4,gateway=g1: allowed by p, denied by quarantine
`
	if text := strings.Join(got, ""); text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if c.Flows != 8 || c.Otherwise != 6 || c.Ungrouped != 0 {
		t.Errorf("%d flows, %d otherwise, %d ungrouped", c.Flows, c.Otherwise, c.Ungrouped)
	}
}
