package console_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
)

// Arguments that are too few or too many are told by their number.
func TestWithin(t *testing.T) {
	cmd := &cobra.Command{Use: "up FILE", Args: console.Within(1, 2)}
	for n, want := range []string{"up does not take 0 arguments", "", "", "up does not take 3 arguments"} {
		err := cmd.ValidateArgs(make([]string, n))
		if want == "" && err == nil {
			continue
		}
		if usage, ok := errors.AsType[console.UsageError](err); !ok || err.Error() != want || usage.Remedy() != "usage: up FILE" {
			t.Errorf("%d arguments: got %v, want %q", n, err, want)
		}
	}
}

func TestKnownVerb(t *testing.T) {
	root := &cobra.Command{Use: "skerry", RunE: func(*cobra.Command, []string) error { return nil }}
	root.AddCommand(&cobra.Command{Use: "run FILE", RunE: root.RunE}, &cobra.Command{Use: "secret", Hidden: true, RunE: root.RunE})
	for word, want := range map[string]string{
		"rum":    "did you mean 'skerry run'?",
		"secre":  "'skerry --help' shows what it takes",
		"listen": "'skerry --help' shows what it takes",
	} {
		err := console.KnownVerb(root, []string{word})
		if usage, ok := errors.AsType[console.UsageError](err); !ok || usage.Remedy() != want {
			t.Errorf("%s: got %v, want the remedy %q", word, err, want)
		}
	}
	if err := console.KnownVerb(root, nil); err != nil {
		t.Error(err)
	}
}

// A file whose folder is not there is refused before what it would hold is made.
func TestCheckPlace(t *testing.T) {
	dir := t.TempDir()
	if err := console.CheckPlace(dir + "/file"); err != nil {
		t.Error(err)
	}
	err := console.CheckPlace(dir + "/missing/file")
	if want := "there is no folder " + dir + "/missing for file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = console.WriteFile(dir+"/missing/file", func(io.Writer) error { return nil })
	if err == nil || !strings.Contains(err.Error(), dir+"/missing/file: ") {
		t.Errorf("got %v", err)
	}
}

func TestWords(t *testing.T) {
	if got := console.Count(1, "pod") + ", " + console.Count(0, "pod") + ", " + console.Dash("") + console.Dash("x"); got != "1 pod, 0 pods, -x" {
		t.Errorf("got %q", got)
	}
}

// A program's exit status is 0, 1, or 2 where it was asked wrongly.
func TestReport(t *testing.T) {
	for want, err := range map[int]error{
		0: nil,
		1: fmt.Errorf("dump: %w", console.Advised("no proxy answers", "name its address")),
		2: fmt.Errorf("start: %w", console.Usage(errors.New("a flag is missing"), "give it")),
	} {
		if got := console.Report("test", err); got != want {
			t.Errorf("%v: exit status %d, want %d", err, got, want)
		}
	}
}
