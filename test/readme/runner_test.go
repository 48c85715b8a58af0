package readme_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = "Text with `$ no command`.\n" +
	"```console\n" +
	"$ make run\n" +
	"lcl   p50 …\n" +
	"\n" +
	"$ skerry plan \\\n" +
	"    FILE\n" +
	"```\n" +
	"```sh\n$ not in a console\n```\n" +
	"```console\n$ sudo skerry ps\nnode\n```\n"

func TestCommands(t *testing.T) {
	want := []command{
		{line: 3, text: "make run", output: []string{"lcl   p50 …"}},
		{line: 6, text: "skerry plan FILE"},
		{line: 13, text: "sudo skerry ps", output: []string{"node"}},
	}
	equal := func(a, b command) bool {
		return a.line == b.line && a.text == b.text && slices.Equal(a.output, b.output)
	}
	if got := commands(page); !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestCompare(t *testing.T) {
	const got = "cell  p50\nlcl   1.2 ms (n = 100)\nedg10 21.9 ms\n"
	for want, ok := range map[string]bool{
		"":                      true,
		"cell p50":              true,
		"lcl … ms (n = …)":      true,
		"cell p50\n…\nedg10 …":  true,
		"lcl 1.2 ms":            false,
		"edg10 …\nlcl …":        false,
		"edg10 …\nedg10 …":      false,
		"cloud20 …":             false,
		"lcl . .. ms (n = 100)": false,
		"cell p50\nlcl … ms (n = …)\n…\nno row": false,
	} {
		if err := compare(strings.Split(want, "\n"), got); (err == nil) != ok {
			t.Errorf("compare %q: %v", want, err)
		}
	}
}

// A command fails by its status, also in the middle of a pipe, and finds the
// programs in bin/ first.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "ls"), []byte("#!/bin/sh\necho ours\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"ls":                       true,
		"sudo ls":                  true,
		"echo ours >&2":            true,
		"echo ours; false":         false,
		"(echo ours; false) | cat": false,
	} {
		got, err := run(t.Context(), dir, text)
		if (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
		if got != "ours\n" {
			t.Errorf("%s printed %q", text, got)
		}
	}
}
