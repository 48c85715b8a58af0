package experiment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// TestSchema keeps docs/experiment.schema.json equal to the types.
func TestSchema(t *testing.T) {
	got, err := experiment.Schema("../..")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/experiment.schema.json", string(got))
	for _, word := range append(experiment.Workloads(), experiment.Metrics()...) {
		if !strings.Contains(string(got), `"`+word+`"`) {
			t.Errorf("the schema does not know %s", word)
		}
	}
	if _, err := experiment.Schema(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without sources: got error %v", err)
	}
	t.Chdir("../..")
	again, err := experiment.Schema(".")
	if err != nil || string(again) != string(got) {
		t.Errorf("the schema differs from one call, or directory, to the next: %v", err)
	}
}

// property is as much of a schema as these tests look at.
type property struct {
	Minimum, Maximum *int64
	Pattern          string
	Items            *property
	OneOf            []property
	Properties       map[string]property
}

func definitions(t *testing.T) (root property, defs map[string]property) {
	t.Helper()
	text, err := os.ReadFile("../../docs/experiment.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		property
		Defs map[string]property `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema.property, schema.Defs
}

// TestSchemaBounds holds that Read accepts each bound of the schema and refuses
// the next number.
func TestSchemaBounds(t *testing.T) {
	file, err := os.ReadFile("testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root, defs := definitions(t)
	load := defs["Load"].Properties
	for _, c := range []struct {
		key, line string
		schema    property
	}{
		{"repetitions", "repetitions: 3", root.Properties["repetitions"]},
		{"iterations", "iterations: 40", load["iterations"]},
		{"warmup", "warmup: 2", load["warmup"]},
		{"threads", "threads: 1", load["threads"].OneOf[0]},
	} {
		if c.schema.Minimum == nil || c.schema.Maximum == nil {
			t.Errorf("%s has no bounds", c.key)
			continue
		}
		for n, valid := range map[int64]bool{
			*c.schema.Minimum - 1: false, *c.schema.Minimum: true, *c.schema.Maximum: true, *c.schema.Maximum + 1: false,
		} {
			text := strings.Replace(string(file), c.line, fmt.Sprintf("%s: %d", c.key, n), 1)
			if _, err := experiment.Read("f", []byte(text)); (err == nil) != valid {
				t.Errorf("%s: %d is valid to the schema: %v; to Read: %v", c.key, n, valid, err)
			}
		}
	}
}

// TestSchemaNames holds that the patterns of the schema and the checks agree on
// what a name is.
func TestSchemaNames(t *testing.T) {
	root, defs := definitions(t)
	cluster := defs["Cluster"].Properties
	label := regexp.MustCompile(root.Properties["name"].Pattern)
	name := regexp.MustCompile(cluster["name"].Pattern)
	if node := cluster["nodes"].Items.Pattern; node != name.String() {
		t.Errorf("nodes are named by %s, clusters by %s", node, name)
	}
	ref := regexp.MustCompile(defs["Topology"].Properties["service"].Pattern)
	file, err := os.ReadFile("testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"a", "a1", "1a", "a-b", "a-", "-a", "A", "a_b", "a.b", "a/b", "ä", strings.Repeat("a", 15), strings.Repeat("a", 16),
		strings.Repeat("a", 63), strings.Repeat("a", 64),
	} {
		if got, want := name.MatchString(s), topology.IsName(s); got != want {
			t.Errorf("%q is a name to the schema: %v, to topology: %v", s, got, want)
		}
		if got, want := ref.MatchString("c1/"+s), topology.IsName(s); got != want {
			t.Errorf("c1/%s is a reference to the schema: %v, to topology: %v", s, got, want)
		}
		_, err := experiment.Read("f", []byte(strings.Replace(string(file), "name: quickstart", "name: "+s, 1)))
		if got := label.MatchString(s); got != (err == nil) {
			t.Errorf("experiment name %q is valid to the schema: %v, to Read: %v", s, got, err)
		}
	}
}
