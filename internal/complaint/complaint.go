// Package complaint finds, in what a program has said, the line that tells why it
// ended. It knows no program: who starts one knows which line that is.
package complaint

import (
	"cmp"
	"os"
	"regexp"
	"strings"
)

// Silence is in place of a complaint where a program has said nothing.
const Silence = "it said nothing"

// words that a line complains by.
var words = regexp.MustCompile(`(?i)\b(alert|cannot|error|failed|fatal|panic)\b`)

// First is the first line that complains, else the last: of programs that end at what
// they complain of, and may then say what follows from it. It is empty where nothing
// was said.
func First(said string) string {
	for line := range strings.Lines(said) {
		if words.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return Last(said)
}

// Last is the last line: of programs that complain of much and go on. It is empty
// where nothing was said.
func Last(said string) string {
	said = strings.TrimSpace(said)
	return strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:])
}

// InFile finds a line, by First or Last, in a file of what was said. It is Silence
// where that has none, and the error of a file that cannot be read.
func InFile(path string, find func(said string) string) string {
	said, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return cmp.Or(find(string(said)), Silence)
}
