package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/gobuild"
)

// Need is a program, with the Debian package that carries it or, where Module is
// set, built from its pinned Go module by internal/gobuild, or where Own is set one of
// Skerry's, which lies beside the one that runs. Steps find all on their path.
type Need struct {
	Program string `yaml:"program"`
	Package string `yaml:"package,omitempty"`
	Module  bool   `yaml:"module,omitempty"`
	Own     bool   `yaml:"own,omitempty"`
}

// MissingError says which program a system needs and does not find.
type MissingError struct {
	System string
	Need   Need
	// Err is why it cannot be built or is not there, for a need that is not installed.
	Err error
}

// Error names the program.
func (e *MissingError) Error() string {
	if e.Need.Module {
		return fmt.Sprintf("system %s needs the program %s, which is built from its Go module: %v", e.System, e.Need.Program, e.Err)
	}
	if e.Need.Own {
		return fmt.Sprintf("system %s needs Skerry's program %s: %v", e.System, e.Need.Program, e.Err)
	}
	return fmt.Sprintf("system %s needs the program %s, which is not installed", e.System, e.Need.Program)
}

// Unwrap gives why it cannot be built.
func (e *MissingError) Unwrap() error { return e.Err }

// ErrNotBuilt says that Build has not been called.
var ErrNotBuilt = errors.New("it is not built yet")

// Missing lists what the system needs and this machine neither has nor, of what is
// built, can build.
func (p *Plugin) Missing() []error {
	var missing []error
	for _, n := range p.Needs {
		switch _, err := p.find(n); {
		case err == nil:
		case n.Own:
			missing = append(missing, err)
		case !n.Module:
			missing = append(missing, &MissingError{System: p.Name, Need: n})
		default:
			if _, err := exec.LookPath("go"); err != nil {
				missing = append(missing, &MissingError{System: p.Name, Need: n, Err: gobuild.ErrNoGo})
			}
		}
	}
	return missing
}

// find is the path of a program that is on the machine.
func (p *Plugin) find(n Need) (string, error) {
	if n.Own {
		path, err := beside(n.Program)
		if err != nil {
			return "", &MissingError{System: p.Name, Need: n, Err: err}
		}
		return path, nil
	}
	if !n.Module {
		return exec.LookPath(n.Program)
	}
	if path := p.built[n.Program]; path != "" {
		return path, nil
	}
	return "", &MissingError{System: p.Name, Need: n, Err: ErrNotBuilt}
}

// beside finds a program that lies in the folder of the one that runs.
func beside(program string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), program)
	_, err = os.Stat(path)
	return path, err
}

// env puts the programs that are not installed first on the path of the steps.
func (p *Plugin) env() []string {
	var folders []string
	for _, n := range p.Needs {
		if path, err := p.find(n); err == nil && n.Package == "" && !slices.Contains(folders, filepath.Dir(path)) {
			folders = append(folders, filepath.Dir(path))
		}
	}
	if len(folders) == 0 {
		return nil
	}
	return []string{"PATH=" + strings.Join(append(folders, os.Getenv("PATH")), string(os.PathListSeparator))}
}

// Missing lists what the stack needs and this machine lacks.
func (s *Stack) Missing() []error {
	var missing []error
	for _, p := range s.Plugins {
		missing = append(missing, p.Missing()...)
	}
	return missing
}

// Build has build make the programs that the stack needs from Go modules, as
// gobuild.Path does. It takes minutes where one was not built before, so it comes
// before anything is measured; Start refuses a stack without it. What cannot be
// built here is a *MissingError.
func (s *Stack) Build(ctx context.Context, build func(ctx context.Context, program string) (string, error)) error {
	for _, p := range s.Plugins {
		for _, n := range p.Needs {
			if !n.Module {
				continue
			}
			path, err := build(ctx, n.Program)
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("system %s: %w", p.Name, err)
			case err != nil:
				return &MissingError{System: p.Name, Need: n, Err: err}
			}
			p.built[n.Program] = path
		}
	}
	return nil
}

// notBuilt says which program Build has not made.
func (s *Stack) notBuilt() error {
	for _, p := range s.Plugins {
		for _, n := range p.Needs {
			if _, err := p.find(n); n.Module && err != nil {
				return err
			}
		}
	}
	return nil
}

// Programs are the paths of the programs that the stack needs, by name, but for
// those that are missing.
func (s *Stack) Programs() (map[string]string, error) {
	paths := map[string]string{}
	for _, p := range s.Plugins {
		for _, n := range p.Needs {
			path, err := p.find(n)
			if _, lacks := errors.AsType[*MissingError](err); lacks || errors.Is(err, exec.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("find program: %w", err)
			}
			paths[n.Program] = path
		}
	}
	return paths, nil
}
