package spec_test

import (
	"net/netip"
	"slices"
	"testing"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

var pair = topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}}}

// Ranges that are given are those of every cluster, and node j has the j-th part behind
// the first, also where that is in the middle of a byte.
func TestNetwork(t *testing.T) {
	s := spec.Spec{Pods: netip.MustParsePrefix("10.64.252.0/22"), Services: netip.MustParsePrefix("10.96.0.0/12")}
	for i := range 2 {
		n := s.Network(&pair, i)
		if n.Pods != s.Pods || n.Services != s.Services || n.API().String() != "10.96.0.1" || n.DNS().String() != "10.96.0.10" {
			t.Errorf("cluster %d has %+v, with %s and %s", i, n, n.API(), n.DNS())
		}
		var got []string
		for j := range 3 {
			got = append(got, n.PodsOf(j).String())
		}
		if want := []string{"10.64.253.0/24", "10.64.254.0/24", "10.64.255.0/24"}; !slices.Equal(got, want) {
			t.Errorf("cluster %d: nodes have %v, want %v", i, got, want)
		}
	}
	half := spec.Spec{Services: s.Services}.Network(&pair, 1)
	if half.Pods != topology.PodRange(1) || half.Services != s.Services {
		t.Errorf("with Services alone it is %+v", half)
	}
}

// Clusters start the programs of what is chosen and no others.
func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		spec.Spec
		needs []string
	}{
		{spec.Spec{}, nil},
		{spec.Spec{CNI: spec.CNIBridge}, []string{"bridge"}},
		{spec.Spec{CNI: spec.CNIFlannel, Metrics: true}, []string{"bridge", "flannel", "metrics-server"}},
	} {
		s, err := c.Complete(&pair)
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"bridge", "flannel", "metrics-server"} {
			if got := s.Needs(program); got != slices.Contains(c.needs, program) {
				t.Errorf("%+v needs %s: %v", c.Spec, program, got)
			}
		}
		if !s.Needs("kubernetes") || !s.Needs("ptp") {
			t.Errorf("%+v does without what all need", c.Spec)
		}
	}
}

// What there is not is named.
func TestCompleteRefuses(t *testing.T) {
	of := func(node topology.Ref, c spec.Capacity) spec.Spec {
		return spec.Spec{Capacity: map[topology.Ref]spec.Capacity{node: c}}
	}
	for _, c := range []struct {
		spec.Spec
		want string
	}{
		{spec.Spec{CNI: "calico"}, `there is no CNI "calico"`},
		{spec.Spec{Proxy: "userspace"}, `there is no proxy "userspace"`},
		{of("c1/other", spec.Capacity{MilliCPU: 500}), "capacity of node c1/other: there is no such node"},
		{of("c1/head", spec.Capacity{MilliCPU: -1}), "capacity of node c1/head: too little: -1 thousandths of a core"},
		{of("c1/head", spec.Capacity{Memory: 1 << 20}), "capacity of node c1/head: too little: 1048576 bytes of memory, of which a pod needs 32 MiB"},
		{of("c1/worker", spec.Capacity{MilliCPU: 1, Memory: 32 << 20}), ""},
		{of("c1/head", spec.Capacity{}), ""},
	} {
		if _, err := c.Complete(&pair); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
