package crilog

import (
	"bytes"
	"testing"
)

func TestText(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-21T17:48:24.1Z stdout F text of a line\n": "text of a line\n",
		"T stderr P half\n":    "half",
		"T stdout F \n":        "\n",
		"T stdout\n":           "T stdout\n",
		"T stdout P:other a b": "a b",
	} {
		if got := Text([]byte(line)); string(got) != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("2026-11-21T17:48:24.1Z stdout F text of a line\n"))
	f.Add([]byte("T stdout P half\n"))
	f.Add([]byte("T stdout\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		got := Text(line)
		if !bytes.HasSuffix(line, got) && !bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), got) {
			t.Errorf("%q of %q", got, line)
		}
	})
}
