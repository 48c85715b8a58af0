// Package program finds the load tools of lab/adapter on this machine: ab, wrk
// and java among Debian's, hey and k6 built from their pinned Go modules, JMeter
// fetched by Maven. It runs no load. Start at Find; Missing looks without making
// anything ready.
package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/jmeter"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
)

// Program is a tool that is here.
type Program struct {
	// Args that a command line begins with: the program, for JMeter java with what
	// it runs.
	Args []string
	// Version as the tool or its pin says it.
	Version string
	// File that is the tool, for its digest; Dir has all that comes with it.
	File, Dir string
}

// MissingError says that a tool is not here.
type MissingError struct {
	Tool string
	// Packages of Debian that are missing; none where the tool was to be built.
	Packages []string
	// Err is why it cannot be built or fetched; nil for a package.
	Err error
}

// Error names the tool, then what is missing.
func (e *MissingError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("load tool %s cannot be made ready: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("load tool %s is not installed", e.Tool)
}

// Unwrap gives why it cannot be built or fetched.
func (e *MissingError) Unwrap() error { return e.Err }

// jvm are Java's own arguments: a heap that suits bodies of 1 MB on a few hundred
// threads, and no window.
var jvm = []string{"-Xms256m", "-Xmx1g", "-Djava.awt.headless=true"}

// Find is a tool of the machine, made ready first where it is built or fetched:
// minutes, once. Tell hears a line before that. The error is a *MissingError, of
// the context, or adapter.ErrUnknown.
func Find(ctx context.Context, tool string, tell func(line string)) (Program, error) {
	switch tool {
	case experiment.ToolAB:
		return installed(ctx, tool, "-V", `Version (\S+)`)
	case experiment.ToolWrk:
		return installed(ctx, tool, "-v", `^wrk (\S+)`)
	case experiment.ToolHey, experiment.ToolK6:
		path, err := gobuild.Builder{Tell: tell}.Path(ctx, tool)
		if err != nil {
			return Program{}, missing(ctx, tool, err)
		}
		_, version, _ := gobuild.Version(tool)
		return Program{Args: []string{path}, Version: version, File: path, Dir: filepath.Dir(path)}, nil
	case experiment.ToolJMeter:
		return findJMeter(ctx, tell)
	}
	return Program{}, fmt.Errorf("%w: %q", adapter.ErrUnknown, tool)
}

// missing keeps the end of a context apart from what is wrong here.
func missing(ctx context.Context, tool string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	m := &MissingError{Tool: tool, Err: err}
	if errors.Is(err, jmeter.ErrNoMaven) {
		m.Packages = []string{"maven"}
	}
	return m
}

// installed is a tool of Debian, which says its version itself.
func installed(ctx context.Context, tool, flag, pattern string) (Program, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return Program{}, Missing(tool)
	}
	// wrk ends with a failure when it is asked; what it says is enough.
	said, err := exec.CommandContext(ctx, path, flag).CombinedOutput()
	version := regexp.MustCompile(pattern).FindSubmatch(said)
	if version == nil {
		return Program{}, &MissingError{Tool: tool, Err: fmt.Errorf("%s %s says no version: %w", path, flag, errors.Join(err, errVersion))}
	}
	return Program{Args: []string{path}, Version: string(version[1]), File: path, Dir: filepath.Dir(path)}, nil
}

var errVersion = errors.New("unknown program of that name")

func findJMeter(ctx context.Context, tell func(line string)) (Program, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return Program{}, Missing(experiment.ToolJMeter)
	}
	home, err := jmeter.Cache{Tell: tell}.Path(ctx)
	if err != nil {
		return Program{}, missing(ctx, experiment.ToolJMeter, err)
	}
	said, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	runtime := regexp.MustCompile(`version "([^"]+)"`).FindSubmatch(said)
	if runtime == nil {
		return Program{}, missing(ctx, experiment.ToolJMeter, fmt.Errorf("%s -version: %w", java, errors.Join(err, errVersion)))
	}
	args := append([]string{java}, jvm...)
	return Program{
		Args:    append(args, "-Djava.util.prefs.userRoot="+home, "-jar", jmeter.Jar(home)),
		Version: jmeter.Version + " on Java " + string(runtime[1]), File: jmeter.Jar(home), Dir: home,
	}, nil
}
