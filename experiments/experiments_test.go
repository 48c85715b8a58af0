package experiments_test

import (
	"io/fs"
	"strings"
	"testing"

	"skerry.dev/skerry/experiments"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/systems"
)

// TestEveryFileIsAnExperiment holds that each is valid, has the name of its
// file, and asks for systems that there are.
func TestEveryFileIsAnExperiment(t *testing.T) {
	files, err := fs.Glob(experiments.FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	known, err := system.Names(systems.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(experiments.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := experiment.Read(file, data)
		if err == nil {
			err = e.CheckSystems(known)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if want := strings.TrimSuffix(file, ".yaml"); e.Name != want {
			t.Errorf("%s holds the experiment %s", file, e.Name)
		}
	}
}

// The cells on kubernetes are cells of the quickstart, so that a comparison of the
// two says what Kubernetes adds.
func TestKubernetesIsTheQuickstart(t *testing.T) {
	quickstart := map[string]bool{}
	for _, c := range read(t, "quickstart.yaml").Cells() {
		quickstart[c.ID()] = true
	}
	pods := read(t, "kubernetes.yaml")
	if pods.Substrate != experiment.SubstrateKubernetes {
		t.Errorf("its substrate is %q", pods.Substrate)
	}
	for _, c := range pods.Cells() {
		if !quickstart[c.ID()] {
			t.Errorf("the quickstart has no cell %s", c)
		}
	}
}
