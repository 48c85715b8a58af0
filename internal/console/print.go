package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/whole"
)

// Count words a number of things, 1 of them as one.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Dash is in a table where there is nothing to say.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// PrintJSON prints a document for programs.
func PrintJSON(cmd *cobra.Command, document any) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// Explain prints what a program failed by and, where there is one, its remedy. Each of
// several errors has a line; errors of a file bring their hints.
func Explain(w io.Writer, program string, err error, remedy string) {
	for line := range strings.Lines(err.Error()) {
		kind := "error"
		text, isHint := strings.CutPrefix(strings.TrimSpace(line), "hint: ")
		if isHint {
			kind = "hint"
		}
		_, _ = fmt.Fprintf(w, "%s: %s: %s\n", program, kind, text)
	}
	if remedy != "" {
		_, _ = fmt.Fprintf(w, "%s: hint: %s\n", program, remedy)
	}
}

// Report explains how a program of Skerry's ended, with the hint that the error brings, and
// gives its exit status: 2 where it was asked wrongly, else 1 with an error.
func Report(program string, err error) int {
	if err == nil {
		return 0
	}
	usage, wrong := errors.AsType[UsageError](err)
	remedy := usage.Remedy()
	if advised, ok := errors.AsType[*advisedError](err); ok {
		remedy = advised.Hint()
	}
	Explain(os.Stderr, program, err, remedy)
	if wrong {
		return 2
	}
	return 1
}

// IsTerminal says that a file is shown as it is written.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// CheckPlace refuses a file whose folder is not there, before any work is done.
func CheckPlace(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return Usage(fmt.Errorf("there is no folder %s for %s", folder, filepath.Base(path)), "make it, or name another place")
	}
	return nil
}

// WriteFile writes a file that the user has named, whole or not at all.
func WriteFile(path string, write func(io.Writer) error) error {
	return whole.Write(path, 0o644, write)
}

// WithoutDefault leaves "(default 0s)" and its like out of the help: a flag that is
// not given does nothing.
func WithoutDefault(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		cmd.Flags().Lookup(name).DefValue = ""
	}
}
