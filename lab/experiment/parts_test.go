package experiment_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
)

// A system is a stack of names joined by "+", each of which must be well formed
// and known; the stack as a whole is a level of the matrix.
func TestStacks(t *testing.T) {
	text, err := os.ReadFile("../../experiments/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := func(systems string) (*experiment.Experiment, error) {
		before, after, _ := strings.Cut(string(text), "systems: [direct, haproxy-mtls]\n")
		if after == "" {
			t.Fatal("the quickstart names other systems")
		}
		after, _, _ = strings.Cut(after, "claims:")
		return experiment.Read("x.yaml", []byte(before+"systems: ["+systems+"]\n"+after))
	}
	e, err := read("direct, low+direct")
	if err != nil {
		t.Fatal(err)
	}
	if cells := e.Cells(); cells[len(cells)-1].System != "low+direct" || cells[0].System != "direct" {
		t.Errorf("cells %v", cells)
	}
	if parts := experiment.Parts("low+direct"); !slices.Equal(parts, []string{"low", "direct"}) {
		t.Errorf("parts %q", parts)
	}
	if err := e.CheckSystems([]string{"direct", "low"}); err != nil {
		t.Error(err)
	}
	if err := e.CheckSystems([]string{"direct", "lower"}); err == nil || !strings.Contains(err.Error(), `there is no system "low"`) ||
		!strings.Contains(err.Error(), "did you mean lower?") {
		t.Errorf("an unknown part: %v", err)
	}
	for systems, want := range map[string]string{
		"direct+":                `system name "" is not valid`,
		"low++direct":            `system name "" is not valid`,
		"low+Direct":             `system name "Direct" is not valid`,
		"low+direct, low+direct": `two systems have the name "low+direct"`,
	} {
		if _, err := read(systems); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", systems, err, want)
		}
	}
}
