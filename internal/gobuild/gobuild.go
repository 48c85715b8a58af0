// Package gobuild builds programs from pinned Go modules into a cache: those that
// the world downloads as release binaries and that a lab starts. Versions and sums
// lie in pins, one go.mod and go.sum for each module, under names that make no
// module, and go into the binary: no checkout is needed, only the go command and,
// the first time, a network; or neither, on a machine that gets a bundle of what
// another has built. A module has a pin of its own so that its programs get the
// dependencies that their authors released them with, whatever the others need.
// It builds for this machine, chooses no versions, and never downloads a binary.
//
// To pin another version, here and by its module's name:
//
//	go get -modfile=pins/nebula.mod github.com/slackhq/nebula@v1.10.3
//
// To pin another module, write pins/NAME.mod with a module and a go line, add each
// program by go get -modfile=pins/NAME.mod -tool PACKAGE@VERSION, and name it in
// Tools.
//
// Start at Builder.Path.
package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Errors that a caller tells apart.
var (
	// ErrUnknown says that no program of the name is pinned.
	ErrUnknown = errors.New("no such pinned program")
	// ErrNoGo says that there is no go command.
	ErrNoGo = errors.New("there is no go command on the path")
)

// lockPause is how often a build that another process does is looked at.
const lockPause = 100 * time.Millisecond

// Builder builds programs and keeps them. The zero Builder keeps them in the
// user's cache and builds in silence.
type Builder struct {
	// Dir of the cache; by default skerry/programs in the user's, which
	// XDG_CACHE_HOME moves.
	Dir string
	// Tell hears a line before each build, and one where another process's is
	// waited for; nil for none.
	Tell func(line string)
	// Progress hears how many packages of a build under way have been compiled, or
	// are, of how many; nil for none.
	Progress func(program string, done, total int)
	// Catalogue of what can be built; by default the tools that systems and loads
	// start.
	Catalogue *Catalogue
}

// Path is the path of a program, which is built first where the cache lacks it:
// minutes of all cores for a large one. The file is called as the program. The
// error is ErrUnknown, ErrNoGo, an *Error or of the context.
func Path(ctx context.Context, name string) (string, error) { return Builder{}.Path(ctx, name) }

// Path is as the function Path, of the builder's catalogue and in its cache.
func (b Builder) Path(ctx context.Context, name string) (string, error) {
	r, err := b.recipe(name)
	if err != nil {
		return "", err
	}
	if isThere(r.given()) {
		return r.given(), nil
	}
	if err := r.findGo(ctx); err != nil {
		return "", err
	}
	if isThere(r.path()) {
		return r.path(), nil
	}
	if err := os.MkdirAll(r.cache, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	lock, err := b.lock(ctx, r)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer func() { _ = lock.Close() }()
	if isThere(r.path()) { // another process was faster
		return r.path(), nil
	}
	b.tell("building %s %s from its Go module %s: it is not in %s; this happens once", name, r.version, r.Module, r.cache)
	if err := r.build(ctx, lock, b.progressOf(name)); err != nil {
		return "", err
	}
	return r.path(), nil
}

// Paths are the paths of those programs of the catalogue that are needed, by their
// names, each as Path gives it; of all where needed is nil.
func (b Builder) Paths(ctx context.Context, needed func(name string) bool) (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range b.catalogue().Names() {
		if needed != nil && !needed(name) {
			continue
		}
		path, err := b.Path(ctx, name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
}

// Folder is where the go command keeps the package that a program is built from,
// with the files beside it; it is fetched where it is not there. It is for
// programs without a source of their own.
func (b Builder) Folder(ctx context.Context, name string) (dir string, err error) {
	r, err := b.recipe(name)
	if err == nil {
		err = r.findGo(ctx)
	}
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "skerry-module-")
	if err != nil {
		return "", fmt.Errorf("sources of %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := r.lay(work); err != nil {
		return "", fmt.Errorf("sources of %s: %w", name, err)
	}
	cmd := r.command(ctx, "list", "-f", "{{.Dir}}", r.importPath())
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = work, &said
	out, err := cmd.Output()
	if err != nil {
		return "", r.failed(ctx, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func (b Builder) progressOf(name string) func(done, total int) {
	if b.Progress == nil {
		return nil
	}
	return func(done, total int) { b.Progress(name, done, total) }
}

// Find is the path of a program that is in the cache, and false where it is not
// or cannot be known to be.
func (b Builder) Find(ctx context.Context, name string) (string, bool) {
	r, err := b.recipe(name)
	if err != nil {
		return "", false
	}
	if isThere(r.given()) {
		return r.given(), true
	}
	if r.findGo(ctx) != nil || !isThere(r.path()) {
		return "", false
	}
	return r.path(), true
}

// Lacking are the names of the catalogue's programs that Find does not find.
func (b Builder) Lacking(ctx context.Context) (names []string) {
	for _, name := range b.catalogue().Names() {
		if _, here := b.Find(ctx, name); !here {
			names = append(names, name)
		}
	}
	return names
}

func isThere(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (b Builder) tell(format string, args ...any) {
	if b.Tell != nil {
		b.Tell(fmt.Sprintf(format, args...))
	}
}

func (b Builder) catalogue() Catalogue {
	if b.Catalogue != nil {
		return *b.Catalogue
	}
	return Tools()
}

// recipe says what a program is made of and where it is kept.
func (b Builder) recipe(name string) (recipe, error) {
	r, err := b.catalogue().recipe(name)
	if err != nil {
		return recipe{}, err
	}
	if r.cache = b.Dir; r.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return recipe{}, &Error{
				Program: name, Message: "no place to keep it: " + err.Error(), Hint: "set XDG_CACHE_HOME or HOME",
			}
		}
		r.cache = filepath.Join(cache, "skerry", "programs")
	}
	return r, nil
}
