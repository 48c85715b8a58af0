package terminal_test

import (
	"strings"
	"testing"

	"skerry.dev/skerry/lab/report/terminal"
)

func text(t *testing.T, colour bool) string {
	t.Helper()
	text := terminal.Text{Colour: colour}
	text.Line(terminal.Bold, "title")
	text.Table(terminal.Table{
		Header: []string{"name", "ms", "verdict"}, NumbersFrom: 1, TextFrom: 2,
		Rows: []terminal.Row{{Cells: []string{"a", "10.25", "same"}}, {Cells: []string{"größer", "7", "slower"}, Marked: true}},
	})
	text.Lines(terminal.Marked, []string{"note"})
	text.Lines(terminal.Marked, nil)
	var out strings.Builder
	if _, err := text.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTableIsAligned(t *testing.T) {
	const want = "title\nname       ms  verdict\na       10.25  same\ngrößer      7  slower\n\nnote\n"
	if got := text(t, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestColourSaysTheSame(t *testing.T) {
	got := text(t, true)
	if !strings.Contains(got, string(terminal.Marked)+"größer      7  slower\x1b[0m\n") {
		t.Errorf("the marked row does not stand out: %q", got)
	}
	if plain := strings.NewReplacer(string(terminal.Bold), "", string(terminal.Marked), "", "\x1b[0m", "").Replace(got); plain != text(t, false) {
		t.Errorf("without its colours: %q", plain)
	}
}

func TestTextDoesNotSteerTheTerminal(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\a\r\nforged line"
	text := terminal.Text{Colour: true}
	text.Line(terminal.Plain, evil)
	text.Table(terminal.Table{Header: []string{evil}, Rows: []terminal.Row{{Cells: []string{evil}}}})
	var out strings.Builder
	if _, err := text.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 3 || strings.ContainsAny(got, "\a\r") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("control characters reach the terminal: %q", got)
	}
}
