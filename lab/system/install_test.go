package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
)

const chooser = `name: chooser
kind: balancer
summary: chooses
variants: [near, far]
kubernetes:
  route: [client, entry, service]
  files: [set.yaml]
  service:
    anywhere: true
    labels: {chosen-by: chooser}
    annotations: {policy: "{{.Variant}}"}
  start:
    - {at: service, daemon: chooser, install: set.yaml}
  address: "{{.Entry.IP}}:{{.Entry.Port}}"
`

// A system of several variants is one of them, has the workload's Service be as it wants,
// and a DaemonSet installed with its files rendered.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	tree := fstest.MapFS{"chooser/system.yaml": file(chooser), "chooser/set.yaml": file("policy: {{.Variant}}\n")}
	s, err := system.Load(tree, "chooser:far")
	if err == nil {
		err = s.On(experiment.SubstrateKubernetes)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := values(t, dir)
	w, err := s.WorkloadService(v)
	if err != nil || !w.Anywhere || w.Labels["chosen-by"] != "chooser" || w.Annotations["policy"] != "far" {
		t.Errorf("the Service is to be %+v, %v", w, err)
	}
	if need := s.Need(4); need.Processes != 4 {
		t.Errorf("it takes %d processes on four nodes", need.Processes)
	}
	lab := &fake{}
	r, err := s.Start(t.Context(), lab, v)
	if err == nil {
		err = r.Connect(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(lab.installed) != 1 || lab.installed[0].Node != "c1/worker" || lab.installed[0].Manifest != filepath.Join(dir, "set.yaml") {
		t.Fatalf("installed is %+v", lab.installed)
	}
	if text, err := os.ReadFile(lab.installed[0].Manifest); string(text) != "policy: far\n" {
		t.Errorf("the manifest is %q, %v", text, err)
	}
	if uses, err := r.Stop(); err != nil || len(uses) != 1 || uses[0].Name != "chooser" {
		t.Errorf("uses %+v, %v", uses, err)
	}
}

func TestVariantsRefused(t *testing.T) {
	tree := layered()
	tree["chooser/system.yaml"] = file(chooser)
	for name, want := range map[string]string{
		"chooser":          `chooser has no variant ""`,
		"chooser:nowhere":  `chooser has no variant "nowhere"`,
		"lower:near+upper": "lower has no variants",
	} {
		if _, err := system.Load(tree, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", name, err, want)
		}
	}
}

func TestInstallRefused(t *testing.T) {
	for what, text := range map[string]string{
		"is no file of the system":           strings.Replace(chooser, "files: [set.yaml]", "files: []", 1),
		"nothing is installed on hosts":      strings.Replace(chooser, "kubernetes:", "hosts:", 1),
		"what is installed is a daemon":      strings.Replace(chooser, "daemon: chooser, ", "", 1),
		"has either run, tcp, reach or inst": strings.Replace(chooser, "install: set.yaml", "install: set.yaml, run: x", 1),
	} {
		tree := fstest.MapFS{"chooser/system.yaml": file(text), "chooser/set.yaml": file("")}
		if _, err := system.Load(tree, "chooser:near"); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, not %s", err, what)
		}
	}
}
