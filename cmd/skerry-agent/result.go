package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// result is a file that appears under its name only when it is complete.
type result struct {
	file *os.File
	name string
}

// createResult makes the temporary file beside name.
func createResult(name string) (*result, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, err
	}
	return &result{file: f, name: name}, nil
}

// commit writes the content and gives the file its name.
func (r *result) commit(write func(io.Writer) error) error {
	const readable = 0o644 // CreateTemp gives the owner alone the right to read
	err := errors.Join(write(r.file), r.file.Chmod(readable), r.file.Close())
	if err != nil {
		return err
	}
	return os.Rename(r.file.Name(), r.name)
}

// discard removes what was not committed. Its errors change nothing: the file
// is gone already or cannot be removed.
func (r *result) discard() {
	_ = r.file.Close()
	_ = os.Remove(r.file.Name())
}
