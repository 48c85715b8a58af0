package verb_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/host"
)

// An error has one line, or one for each of several, and one hint: its own before
// that of what it wraps.
func TestExplain(t *testing.T) {
	advised := verb.Advised("three cells are slower", "look at the rows")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("it rained"), "skerry: error: it rained\n"},
		{fmt.Errorf("run: %w", advised), "skerry: error: run: three cells are slower\nskerry: hint: look at the rows\n"},
		{errors.Join(advised, errors.New("and it rained")), "skerry: error: three cells are slower\nskerry: error: and it rained\nskerry: hint: look at the rows\n"},
		{errors.New("f:1:1: no key\nhint: add it"), "skerry: error: f:1:1: no key\nskerry: hint: add it\n"},
		{verb.Usage(host.ErrNoLab, "name another"), "skerry: error: " + host.ErrNoLab.Error() + "\nskerry: hint: name another\n"},
		{verb.Usage(host.ErrNoLab, ""), "skerry: error: " + host.ErrNoLab.Error() + "\nskerry: hint: 'skerry ps' lists the labs, 'skerry up FILE' makes one\n"},
	} {
		var out strings.Builder
		if verb.Explain(&out, c.err); out.String() != c.want {
			t.Errorf("got\n%swant\n%s", out.String(), c.want)
		}
	}
}

// Arguments that are too few or too many are told by their number.
func TestWithin(t *testing.T) {
	cmd := &cobra.Command{Use: "up FILE", Args: verb.Within(1, 2)}
	for n, want := range []string{"up does not take 0 arguments", "", "", "up does not take 3 arguments"} {
		err := cmd.ValidateArgs(make([]string, n))
		if want == "" && err == nil {
			continue
		}
		if _, usage := errors.AsType[verb.UsageError](err); !usage || err.Error() != want || verb.Hint(err) != "usage: up FILE" {
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
		err := verb.KnownVerb(root, []string{word})
		if err == nil || verb.Hint(err) != want {
			t.Errorf("%s: got %v, hint %q, want %q", word, err, verb.Hint(err), want)
		}
	}
	if err := verb.KnownVerb(root, nil); err != nil {
		t.Error(err)
	}
}

// A file whose folder is not there is refused before what it would hold is made.
func TestCheckPlace(t *testing.T) {
	dir := t.TempDir()
	if err := verb.CheckPlace(dir + "/file"); err != nil {
		t.Error(err)
	}
	err := verb.CheckPlace(dir + "/missing/file")
	if want := "there is no folder " + dir + "/missing for file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = verb.WriteFile(dir+"/missing/file", func(io.Writer) error { return nil })
	if err == nil || !strings.Contains(err.Error(), dir+"/missing/file: ") {
		t.Errorf("got %v", err)
	}
}

func TestWords(t *testing.T) {
	if got := verb.Count(1, "pod") + ", " + verb.Count(0, "pod") + ", " + verb.Dash("") + verb.Dash("x"); got != "1 pod, 0 pods, -x" {
		t.Errorf("got %q", got)
	}
}
