package experiment_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/experiment"
)

var update = flag.Bool("update", false, "write the golden files and docs/experiment.schema.json anew")

// golden compares text with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s\n(go test ./lab/experiment -update writes it anew)", file, got, want)
	}
}

func read(t testing.TB, file string) *experiment.Experiment {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Read(filepath.Base(file), data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBroken reads every file of testdata/broken; the whole of what a user
// would see stands beside it.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 22 {
		t.Fatalf("%d broken files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e, err := experiment.Read(filepath.Base(file), data)
			if err == nil || e != nil {
				t.Fatalf("it was read: %+v, %v", e, err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestHugeFile(t *testing.T) {
	data := []byte("name: huge\ndescription: " + strings.Repeat("very ", 1<<18) + "huge\n")
	_, err := experiment.Read("huge.yaml", data)
	want := "huge.yaml:1:1: the file has 1310749 bytes, the most is 1048576\nhint: is this the right file?"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestCheckSystems(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	if err := e.CheckSystems([]string{"clusterlink", "direct", "haproxy-mtls"}); err != nil {
		t.Errorf("all are known: %v", err)
	}
	err := e.CheckSystems([]string{"direct", "haproxy-tls"})
	want := "quickstart.yaml:14:19: there is no system \"haproxy-mtls\"\nhint: did you mean haproxy-tls?"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestObjectives(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	_, share, err := e.Objectives[0].Bound()
	if share != 0.01 || err != nil {
		t.Errorf("errors are below %v, %v; want 1%%", share, err)
	}
	response, _, err := e.Objectives[1].Bound()
	if response.String() != "100ms" || err != nil {
		t.Errorf("p50 is below %v, %v; want 100ms", response, err)
	}
	for _, c := range e.Cells() {
		if !e.Objectives[0].Selects(c) {
			t.Errorf("an objective without selectors leaves out %s", c)
		}
		if got, want := e.Objectives[1].Selects(c), c.Scenario.Name == "edg10"; got != want {
			t.Errorf("objective of edg10 selects %s: %v", c, got)
		}
	}
}

// FuzzRead holds that no file panics, that errors have a place and a message,
// and that whatever is read expands within its bounds into distinct cells.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	broken, _ := filepath.Glob("testdata/broken/*.yaml")
	for _, file := range append(files, broken...) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 2000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := experiment.Read("f", data)
		if err != nil {
			var all *strict.Errors
			if !errors.As(err, &all) || len(all.List) == 0 || len(all.List) > 20 {
				t.Fatalf("error of another kind: %v", err)
			}
			for _, p := range all.List {
				if p.Line < 1 || p.Column < 1 || p.Message == "" || strings.ContainsAny(p.Message+p.Hint, "\n\r\x1b") {
					t.Errorf("bad error: %q", p)
				}
			}
			return
		}
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("it cannot be recorded: %v", err)
		}
		cells := e.Cells()
		if len(cells) == 0 || len(cells) > 10_000 {
			t.Fatalf("%d cells", len(cells))
		}
		ids, labels := map[string]bool{}, map[string]bool{}
		for _, c := range cells[:min(len(cells), 100)] {
			ids[c.ID()], labels[c.String()] = true, true
			if d := e.Estimate(c); d <= 0 {
				t.Errorf("%s takes %v", c, d)
			}
		}
		if n := min(len(cells), 100); len(ids) != n || len(labels) != n {
			t.Errorf("%d cells have %d names and %d labels: %v", n, len(ids), len(labels), fmt.Sprint(labels))
		}
	})
}
