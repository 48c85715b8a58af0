// Package source reads an experiment file for the verbs that carry it out: with the
// plug-ins that it names, and with all programs that it needs, found, built, or told as
// missing. What a file says is lab/experiment's. Start at Read.
package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair/recording"
	"skerry.dev/skerry/lab/impair/trace"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// fileMax bounds an experiment file.
const fileMax = 1 << 20

// File is an experiment file with the stacks of plug-ins that it names.
type File struct {
	*experiment.Experiment
	Stacks  map[string]*system.Stack
	Digests map[string]string
	// Paths are the nodes that a request visits, by system.
	Paths map[string][]topology.Ref
	// Places of the topology, as systems see them.
	Places system.Values
}

// Read reads an experiment file, checks it, and renders every system dry. All
// that is wrong is a console.UsageError.
func Read(file, systemsDir string) (File, error) {
	data, err := readBounded(file)
	if err != nil {
		return File{}, err
	}
	return Parse(file, data, systemsDir)
}

// Parse is read of a file's text.
func Parse(file string, data []byte, systemsDir string) (File, error) {
	tree, err := SystemTree(systemsDir)
	if err != nil {
		return File{}, err
	}
	names, err := system.Names(tree)
	if err != nil {
		return File{}, console.Usage(err, "")
	}
	e, err := experiment.Read(file, data)
	if err == nil {
		err = errors.Join(e.CheckSystems(names), checkTools(e), e.ResolveTraces(func(name string) (string, error) {
			return FindTrace(filepath.Dir(file), name)
		}), e.ResolveRecordings(func(name string) (string, recording.Recording, error) {
			return findRecording(filepath.Dir(file), name)
		}))
	}
	if err != nil {
		return File{}, console.Usage(err, "")
	}
	s, err := load(tree, e)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// FindTrace names the trace of an experiment by its absolute path, unless it is
// built in, once it could be read.
func FindTrace(folder, name string) (string, error) {
	if trace.Known(name) {
		return name, nil
	}
	path, err := Absolute(folder, name)
	if err == nil {
		_, err = trace.Open(path)
	}
	return path, err
}

// findRecording reads a distribution of an experiment, and names it by its absolute
// path.
func findRecording(folder, name string) (path string, r recording.Recording, err error) {
	path, err = Absolute(folder, name)
	if err == nil {
		r, err = recording.Open(path)
	}
	return path, r, err
}

// Absolute path of a file that is named from a folder.
func Absolute(folder, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	return filepath.Abs(name)
}

// WithPlugins is an experiment that was read and checked before, with the
// stacks of plug-ins that it names.
func WithPlugins(e *experiment.Experiment, systemsDir string) (File, error) {
	tree, err := SystemTree(systemsDir)
	if err != nil {
		return File{}, err
	}
	return load(tree, e)
}

// SystemTree is where plug-ins come from: the folder asked for, or those that
// are built in.
func SystemTree(dir string) (fs.FS, error) {
	if dir == "" {
		return systems.FS, nil
	}
	tree := os.DirFS(dir)
	if names, err := system.Names(tree); err != nil || len(names) == 0 {
		return nil, console.Usage(errors.Join(fmt.Errorf("folder %s holds no system", dir), err),
			"--systems takes a folder of folders, each with a system.yaml")
	}
	return tree, nil
}

func load(tree fs.FS, e *experiment.Experiment) (s File, err error) {
	s = File{Experiment: e, Stacks: map[string]*system.Stack{}, Digests: map[string]string{}, Paths: map[string][]topology.Ref{}}
	for _, name := range e.Systems {
		stack, err := system.Load(tree, name)
		if err != nil {
			return File{}, console.Usage(err, "")
		}
		err = stack.On(e.Substrate)
		if err == nil && e.Autoscaled(experiment.Cell{System: name}) != nil {
			err = stack.Scales()
		}
		if err != nil {
			return File{}, console.Usage(err, "")
		}
		values, err := system.ValuesFor(&e.Topology, "/dir", 1)
		if err == nil {
			err = stack.Render(values)
		}
		if err == nil {
			spoken := e.Load
			spoken.Protocol = e.Protocols()
			err = stack.Check(spoken)
		}
		if err == nil {
			s.Digests[name], err = stack.Digest()
		}
		if err != nil {
			return File{}, console.Usage(err, "")
		}
		s.Stacks[name], s.Paths[name], s.Places = stack, stack.Path(values), values
	}
	return s, nil
}

func readBounded(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, console.Usage(fmt.Errorf("there is no file %s", file), "name an experiment file, such as experiments/quickstart.yaml")
	case err != nil:
		return nil, console.Usage(err, "")
	case info.IsDir():
		return nil, console.Usage(fmt.Errorf("%s is a folder", file), "name an experiment file in it")
	case !info.Mode().IsRegular() || info.Size() > fileMax:
		return nil, console.Usage(fmt.Errorf("%s is not an experiment file", file), fmt.Sprintf("it must be a regular file of at most %d bytes", fileMax))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, console.Usage(err, "")
	}
	return data, nil
}

// SystemsFlag is --systems, the folder that Read takes.
func SystemsFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("systems", "", "folder of system plug-ins (default: those built in)")
}
