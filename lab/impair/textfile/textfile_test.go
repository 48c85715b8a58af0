package textfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"skerry.dev/skerry/lab/impair/textfile"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(file, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := textfile.Read(file); err != nil || string(data) != "1\n2\n" {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := textfile.Read(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := textfile.Read(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

// A file without an end is refused, not read until memory ends.
func TestReadEndless(t *testing.T) {
	const want = "/dev/zero: the file has more than 67108864 bytes; cut it"
	_, err := textfile.Read("/dev/zero")
	if _, ok := errors.AsType[*textfile.Error](err); !ok || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestError(t *testing.T) {
	err := textfile.Wrong(3, "write a number", "%q is none", "soon")
	if want := `line 3: "soon" is none; write a number`; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
