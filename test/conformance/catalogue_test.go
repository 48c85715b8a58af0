package main

import (
	"slices"
	"testing"

	"skerry.dev/skerry/internal/gobuild/gobuildtest"
	"skerry.dev/skerry/kube"
)

func TestPins(t *testing.T) { gobuildtest.Check(t, *catalogue()) }

// The suite is that of the Kubernetes that clusters run, and every image is made of
// programs that are there.
func TestCatalogue(t *testing.T) {
	_, runs, _ := kube.Catalogue().Version(kube.Kubernetes)
	if _, version, ok := catalogue().Version(suite); !ok || version != runs {
		t.Errorf("the suite is %s, clusters run %s", version, runs)
	}
	known := append(catalogue().Names(), kube.Catalogue().Names()...)
	files := []string{layerTools, layerNautilus, layerKitten}
	for _, i := range images() {
		for _, layer := range i.layers {
			if !slices.Contains(known, layer) && !slices.Contains(files, layer) {
				t.Errorf("%v: there is no %s", i.names, layer)
			}
		}
	}
}
