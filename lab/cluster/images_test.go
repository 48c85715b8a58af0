package cluster

import (
	"testing"

	"skerry.dev/skerry/lab/cluster/spec"
)

// A first node has CoreDNS, and metrics-server where it is asked for.
func TestHeadImages(t *testing.T) {
	for metrics, want := range map[bool][]string{
		false: {coreDNSImage},
		true:  {coreDNSImage, "skerry.local/metrics-server:lab"},
	} {
		o := Options{Spec: spec.Spec{Metrics: metrics}, Programs: map[string]string{"coredns": "/p/coredns", spec.MetricsServer: "/p/metrics-server"}}
		got := headImages(o)
		if len(got) != len(want) {
			t.Fatalf("metrics %v: images %+v", metrics, got)
		}
		for i, image := range got {
			if image.Reference != want[i] || image.Program == "" {
				t.Errorf("metrics %v: image %+v, want %s", metrics, image, want[i])
			}
		}
	}
}
