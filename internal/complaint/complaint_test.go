package complaint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/complaint"
)

func TestFind(t *testing.T) {
	for _, c := range []struct{ said, first, last string }{
		{"", "", ""},
		{"\n \n", "", ""},
		{"only line", "only line", "only line"},
		{"hello\n  Cannot find my configuration \nbye\n", "Cannot find my configuration", "bye"},
		{"W: failed to get X, trying again\nlistening\naddress already in use\r\n\n", "W: failed to get X, trying again", "address already in use"},
		{"0 errors\nterrors of the deep\n", "terrors of the deep", "terrors of the deep"},
		{"panic: x\n\ngoroutine 1 [running]:\n", "panic: x", "goroutine 1 [running]:"},
	} {
		if got := complaint.First(c.said); got != c.first {
			t.Errorf("first of %q: got %q, want %q", c.said, got, c.first)
		}
		if got := complaint.Last(c.said); got != c.last {
			t.Errorf("last of %q: got %q, want %q", c.said, got, c.last)
		}
	}
}

func TestInFile(t *testing.T) {
	log := filepath.Join(t.TempDir(), "program.log")
	if got := complaint.InFile(log, complaint.Last); !strings.Contains(got, log) {
		t.Errorf("of no file: got %q", got)
	}
	for said, want := range map[string]string{"": complaint.Silence, "hello\nerror: no room\nbye\n": "error: no room"} {
		if err := os.WriteFile(log, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := complaint.InFile(log, complaint.First); got != want {
			t.Errorf("of %q: got %q, want %q", said, got, want)
		}
	}
}

// Whatever was said, what is found is a line of it.
func FuzzFind(f *testing.F) {
	f.Add("hello\n cannot go on\r\nbye\n")
	f.Fuzz(func(t *testing.T, said string) {
		for _, line := range []string{complaint.First(said), complaint.Last(said)} {
			if strings.Contains(line, "\n") || !strings.Contains(said, line) || line != strings.TrimSpace(line) {
				t.Errorf("found %q in %q", line, said)
			}
			if line == "" && strings.TrimSpace(said) != "" {
				t.Errorf("found nothing in %q", said)
			}
		}
	})
}
