package run

import (
	"fmt"
	"maps"
	"slices"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair/recording"
	"skerry.dev/skerry/lab/impair/trace"
)

// File is what a run reads beside its experiment.
type File struct {
	Path string `json:"path"`
	// SHA256 of the file, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// recordings are the files of traces and distributions, each once. A trace that is
// built in has none.
func recordings(e *experiment.Experiment) ([]File, error) {
	named := map[string]bool{}
	for _, i := range e.Impairments() {
		if i.Trace != "" && !trace.Known(i.Trace) {
			named[i.Trace] = true
		}
		if i.Distribution.IsFile() {
			named[string(i.Distribution)] = true
		}
	}
	var all []File
	for _, path := range slices.Sorted(maps.Keys(named)) {
		digest, err := digestOf(path)
		if err != nil {
			return nil, fmt.Errorf("digest of what links follow: %w", err)
		}
		all = append(all, File{path, digest})
	}
	return all, nil
}

// ChangedFileError says that a file that links follow is not what the run began
// with.
type ChangedFileError struct{ Path string }

// Error names the file.
func (e *ChangedFileError) Error() string {
	return e.Path + " has changed since the run began"
}

// unchanged says whether the files that links follow are what the run began with.
// The error may be a *ChangedFileError.
func (r Record) unchanged() error {
	now, err := recordings(r.Experiment)
	if err != nil {
		return err
	}
	for _, before := range r.Recordings { // none of a version that recorded none
		i := slices.IndexFunc(now, func(f File) bool { return f.Path == before.Path })
		if i < 0 || now[i] != before {
			return &ChangedFileError{before.Path}
		}
	}
	return nil
}

// reread has the links of a recorded experiment follow their files again, which
// must be what they were. The error may be a *ChangedFileError.
func (r Record) reread() error {
	if err := r.unchanged(); err != nil {
		return err
	}
	for _, i := range r.Experiment.Impairments() {
		if !i.Distribution.IsFile() {
			continue
		}
		read, err := recording.Open(string(i.Distribution))
		if err == nil {
			err = read.Apply(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
