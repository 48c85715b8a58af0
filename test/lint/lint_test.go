// Package lint_test shows that .golangci.yml holds the rules of CONTRIBUTING.md:
// it runs the linter over a small module that breaks each of them once, and
// keeps to each elsewhere. Start reading at testdata/rules.txtar.
package lint_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// issue is a line of the linter: FILE:LINE:COLUMN: message (linter).
var issue = regexp.MustCompile(`(?m)^(\S+\.go:\d+)(?::\d+)?: .* \((\w+)\)$`)

func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("the linter type-checks a module: not in a short run")
	}
	archive, err := txtar.ParseFile("testdata/rules.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range archive.Files {
		archive.Files[i].Data = long(archive.Files[i].Data)
	}
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".golangci.yml"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	got := lint(t, dir)
	want := strings.Fields(strings.ReplaceAll(string(archive.Comment), ": ", ":"))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the linter found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var repeat = regexp.MustCompile(`(?m)^@(\d+) LINES@$`)

// long puts in the lines that are tedious to keep: @70 LINES@ stands for 70.
func long(b []byte) []byte {
	return repeat.ReplaceAllFunc(b, func(mark []byte) []byte {
		n, _ := strconv.Atoi(string(repeat.FindSubmatch(mark)[1]))
		return bytes.TrimSuffix(bytes.Repeat([]byte("\ttotal += 2\n"), n), []byte("\n"))
	})
}

// lint lists what the linter finds in a module, as FILE:LINE:LINTER, sorted.
func lint(t *testing.T, dir string) []string {
	t.Helper()
	tools, err := filepath.Abs("../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", "-modfile="+tools, "golangci-lint", "run", "--allow-parallel-runners",
		"--show-stats=false", "--output.text.path=stdout", "--output.text.print-issued-lines=false", "--output.text.colors=false", "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Fatalf("golangci-lint: %v, want exit status 1 for issues\n%s", err, out)
	}
	var found []string
	for _, m := range issue.FindAllStringSubmatch(string(out), -1) {
		found = append(found, fmt.Sprintf("%s:%s", m[1], m[2]))
	}
	if len(found) != strings.Count(strings.TrimSpace(string(out)), "\n")+1 {
		t.Errorf("the linter said more than its issues:\n%s", out)
	}
	slices.Sort(found)
	return found
}
