package whole_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/whole"
)

// text is a function that writes it.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// holds checks the one file of a folder, and that nothing is beside it.
func holds(t *testing.T, dir, name, want string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the folder holds %v", entries)
	}
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

// A file has its old text until the new one is complete, and its rights are those
// that were asked for, whatever the old one had.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	errHalf := errors.New("half of it")
	err := whole.Write(path, 0o600, func(w io.Writer) error { return errors.Join(text("ne")(w), errHalf) })
	if !errors.Is(err, errHalf) {
		t.Errorf("got %v", err)
	}
	holds(t, dir, "report", "old")
	if err := whole.Write(path, 0o600, text("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, "report", "new")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := whole.JSON(path, 0o644, map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, "report", "{\n  \"n\": 1\n}\n")
	if err := whole.JSON(path, 0o644, func() {}); err == nil {
		t.Error("a function is JSON")
	}
	holds(t, dir, "report", "{\n  \"n\": 1\n}\n")
}

// What was created is not seen before it is committed, and not after it was discarded.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "samples")
	for _, commit := range []bool{false, true} {
		f, err := whole.Create(path, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if err := text("rows")(f); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there before its time: %v", err)
		}
		if commit {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		f.Discard()
		if entries, err := os.ReadDir(dir); err != nil || !commit && len(entries) > 0 {
			t.Errorf("the folder holds %v, %v", entries, err)
		}
	}
	holds(t, dir, "samples", "rows")
}

// Errors name what the user has named.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{
		filepath.Join(dir, "missing", "x"): fs.ErrNotExist,
		dir:                                whole.ErrKind,
		"/dev/null":                        whole.ErrKind,
		"/proc/x":                          unix.ENOENT,
	} {
		err := whole.Write(path, 0o644, text("x"))
		if !errors.Is(err, want) || !strings.HasPrefix(fmt.Sprint(err), "write "+path+": ") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("/dev/null is now %v, %v", info, err)
	}
}

// A disk that is full is told by the name of the file, and nothing stays on it.
func TestFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a small disk is mounted")
	}
	path := filepath.Join(t.TempDir(), "x")
	var left []os.DirEntry
	err := onSmallDisk(filepath.Dir(path), func() error {
		err := whole.Write(path, 0o644, text(strings.Repeat("x", 1<<20)))
		var readErr error
		left, readErr = os.ReadDir(filepath.Dir(path))
		return errors.Join(err, readErr)
	})
	if want := "write " + path + ": no space left on device"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// onSmallDisk has a function find a disk of 64 KiB in a folder. The mount is that of
// its thread, and ends with it.
func onSmallDisk(dir string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// A link stays, and leads to the new text.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "config"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if err := whole.Write(link, 0o600, text("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, "config", "new")
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := whole.Write(link, 0o600, text("x")); !errors.Is(err, whole.ErrKind) {
		t.Errorf("of a link that leads nowhere: got %v", err)
	}
}
