// Package whole writes files that are there as a whole or not at all: what is being
// written lies beside its place until it is complete and on the disk, and then takes
// that place in one step. A program that is killed leaves at most a file whose name
// begins with a dot. Folders are not its business. Start at Write.
package whole

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// ErrKind says that something is there that is not a regular file, such as a device:
// the file would take its place.
var ErrKind = errors.New("not a regular file")

// Write has a function write a file with these rights, less those that the umask
// takes. The error is the function's, ErrKind or an *fs.PathError of path.
func Write(path string, perm fs.FileMode, write func(io.Writer) error) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// JSON writes a value as indented JSON.
func JSON(path string, perm fs.FileMode, value any) error {
	return Write(path, perm, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	})
}

// File is one that is being written.
type File struct {
	pending *renameio.PendingFile
	path    string
}

// Create makes a file that has its name from Commit on; it tells early whether there
// is a place for it. A link is followed to the file that it leads to.
func Create(path string, perm fs.FileMode) (*File, error) {
	place := path
	if led, err := filepath.EvalSymlinks(path); err == nil {
		place = led
	}
	if info, err := os.Lstat(place); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: %w", path, ErrKind)
	}
	// Beside its place even where /tmp is on the same disk: there nobody looks for what
	// a killed program left.
	pending, err := renameio.NewPendingFile(place, renameio.WithTempDir(filepath.Dir(place)), renameio.WithPermissions(perm))
	if err != nil {
		return nil, naming(path, err)
	}
	return &File{pending, path}, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.pending.Write(b)
	return n, naming(f.path, err)
}

// Commit ends the file and gives it its name.
func (f *File) Commit() error { return naming(f.path, f.pending.CloseAtomicallyReplace()) }

// Discard removes what was not committed. After Commit it does nothing.
func (f *File) Discard() {
	_ = f.pending.Cleanup() // the file is gone already, or cannot be removed
}

// naming has an error name the file that was asked for in place of the one beside it.
func naming(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: e.Err}
	}
	return err
}
