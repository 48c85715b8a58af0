package gobuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// tiny is a builder whose hey is a program of this test's own, which says words:
// its module lies in a folder, so that no network is needed.
func tiny(t *testing.T, words string) Builder {
	t.Helper()
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module github.com/rakyll/hey\n\ngo 1.26.0\n")
	write(t, filepath.Join(module, "main.go"), fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", words))
	return Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: pinOf("v0.1.4", "replace github.com/rakyll/hey => "+module, "")}
}

// pinOf is hey alone.
func pinOf(version, more, sum string) *Catalogue {
	mod := "module skerry.dev/skerry/pins/hey\n\ngo 1.26.0\n\ntool github.com/rakyll/hey\n\nrequire github.com/rakyll/hey " + version + "\n\n" + more + "\n"
	return &Catalogue{
		Files:    fstest.MapFS{"pins/hey.mod": {Data: []byte(mod)}, "pins/hey.sum": {Data: []byte(sum)}},
		Programs: []Program{{Name: "hey", Pin: "hey", Module: "github.com/rakyll/hey"}},
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// said is what a program prints.
func said(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, out)
	}
	return strings.TrimSpace(string(out))
}

// ready is the recipe of hey, with the go command that it is built by.
func ready(t *testing.T, b Builder) recipe {
	t.Helper()
	r, err := b.recipe("hey")
	if err == nil {
		err = r.findGo(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuildOnce(t *testing.T) {
	b := tiny(t, "hello")
	var told []string
	b.Tell = func(line string) { told = append(told, line) }
	if path, ok := b.Find(t.Context(), "hey"); ok {
		t.Errorf("found %s before it is built", path)
	}
	if lacking := b.Lacking(t.Context()); !slices.Equal(lacking, []string{"hey"}) {
		t.Errorf("it lacks %v before it is built", lacking)
	}
	if paths, err := b.Paths(t.Context(), func(name string) bool { return name != "hey" }); err != nil || len(paths) > 0 {
		t.Errorf("what is not needed is in %v, %v", paths, err)
	}
	path, err := b.Path(t.Context(), "hey")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) != "hey" || said(t, path) != "hello" {
		t.Errorf("%s says %q", path, said(t, path))
	}
	again, err := b.Path(t.Context(), "hey")
	if err != nil || again != path {
		t.Errorf("then %s, %v", again, err)
	}
	if found, ok := b.Find(t.Context(), "hey"); !ok || found != path {
		t.Errorf("found %s", found)
	}
	if paths, err := b.Paths(t.Context(), nil); err != nil || len(paths) != 1 || paths["hey"] != path {
		t.Errorf("all are %v, %v", paths, err)
	}
	if lacking := b.Lacking(t.Context()); len(lacking) > 0 {
		t.Errorf("it lacks %v", lacking)
	}
	want := "building hey v0.1.4 from its Go module github.com/rakyll/hey: it is not in " + b.Dir + "; this happens once"
	if !slices.Equal(told, []string{want}) {
		t.Errorf("told %q", told)
	}
	left, err := filepath.Glob(filepath.Join(b.Dir, "*"))
	if err != nil || !slices.Equal(left, []string{filepath.Dir(path), filepath.Dir(path) + ".lock"}) {
		t.Errorf("the cache has %v, %v", left, err)
	}
}

// A program can be a package's tests.
func TestBuildOfTests(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module github.com/rakyll/hey\n\ngo 1.26.0\n")
	write(t, filepath.Join(module, "hey.go"), "package hey\n")
	write(t, filepath.Join(module, "hey_test.go"), "package hey\n\nimport \"testing\"\n\nfunc TestMain(*testing.M) { println(\"tested\") }\n")
	b := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: pinOf("v0.1.4", "replace github.com/rakyll/hey => "+module, "")}
	b.Catalogue.Programs[0].Test = true
	b.Progress = func(string, int, int) {}
	path, err := b.Path(t.Context(), "hey")
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, path); got != "tested" {
		t.Errorf("it says %q", got)
	}
	if dir, err := b.Folder(t.Context(), "hey"); err != nil || dir != module {
		t.Errorf("its sources lie in %q, %v", dir, err)
	}
	if _, err := b.Folder(t.Context(), "heyo"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of an unknown program: %v", err)
	}
}

// The pin and the toolchain name the build: another pin is another program.
func TestKey(t *testing.T) {
	b := tiny(t, "one")
	first, err := b.Path(t.Context(), "hey")
	if err != nil {
		t.Fatal(err)
	}
	other := tiny(t, "two")
	other.Dir = b.Dir
	second, err := other.Path(t.Context(), "hey")
	if err != nil || first == second || said(t, first) != "one" || said(t, second) != "two" {
		t.Errorf("%s and %s, %v", first, second, err)
	}
	r := ready(t, b)
	place := r.dir()
	for name, change := range map[string]func(*recipe){
		"program":   func(r *recipe) { r.Folder = "cmd" },
		"sums":      func(r *recipe) { r.sum = []byte("x") },
		"source":    func(r *recipe) { r.source = []byte("x") },
		"tags":      func(r *recipe) { r.Tags = "x" },
		"stamps":    func(r *recipe) { r.Stamps = []string{"x"} },
		"tests":     func(r *recipe) { r.Test = true },
		"toolchain": func(r *recipe) { r.toolchain = strings.Replace(r.toolchain, "go1", "go2", 1) },
	} {
		changed := r
		if change(&changed); changed.dir() == place {
			t.Errorf("another %s has the same place", name)
		}
	}
	if !strings.HasPrefix(r.toolchain, "go1.") || len(strings.Fields(r.toolchain)) < 2 {
		t.Errorf("the toolchain is %q", r.toolchain)
	}
}

// Two at once build once: the second waits, and says so.
func TestTwoAtOnce(t *testing.T) {
	b := tiny(t, "hello")
	var mutex sync.Mutex
	told := map[string]int{}
	b.Tell = func(line string) {
		mutex.Lock()
		defer mutex.Unlock()
		told[strings.Fields(line)[0]]++
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if path, err := b.Path(t.Context(), "hey"); err != nil || !isThere(path) {
				t.Errorf("%s, %v", path, err)
			}
		})
	}
	all.Wait()
	if told["building"] != 1 {
		t.Errorf("told %v", told)
	}
}

// What a killed build left is no program, and does not stop the next.
func TestAfterAKill(t *testing.T) {
	b := tiny(t, "whole")
	r := ready(t, b)
	write(t, filepath.Join(r.dir()+".part", "out", "hey"), "half")
	write(t, filepath.Join(r.dir()+".part", "go.mod"), "nonsense")
	write(t, r.dir()+".lock", "")
	if path, ok := b.Find(t.Context(), "hey"); ok {
		t.Errorf("half a program is found: %s", path)
	}
	path, err := b.Path(t.Context(), "hey")
	if err != nil || said(t, path) != "whole" {
		t.Errorf("%s, %v", path, err)
	}
	if _, err := os.Stat(r.dir() + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder stays: %v", err)
	}
}

// killed has this test program, started once more, build in a folder until it is killed.
const killed = "SKERRY_TEST_BUILD"

// The go command of a process that was killed goes on, and nobody else builds until it
// has ended.
func TestTheBuildOutlivesAKill(t *testing.T) {
	b := Builder{Dir: os.Getenv(killed), Catalogue: pinOf("v0.1.4", "", "")}
	if b.Dir != "" {
		_, err := b.Path(t.Context(), "hey")
		t.Fatalf("the build has ended: %v", err)
	}
	b.Dir = t.TempDir()
	note := filepath.Join(t.TempDir(), "pid")
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = build ] || exit 0\necho $$ >" + note + ".new; mv " + note + ".new " + note + "\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheBuildOutlivesAKill$")
	cmd.Env = append(os.Environ(), killed+"="+b.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for deadline := time.Now().Add(10 * time.Second); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(note); err == nil {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pid == 0 {
		t.Fatal("nothing is built")
	}
	end := sync.OnceFunc(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Tell = func(string) { cancel() } // it waits
	if lock, err := b.lock(ctx, ready(t, b)); !errors.Is(err, context.Canceled) {
		_ = lock.Close()
		t.Fatalf("another builds beside it: %v", err)
	}
	end()
	b.Tell = nil
	lock, err := b.lock(t.Context(), ready(t, b))
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
}

// A lock that another holds is waited for until the caller has had enough.
func TestWaitAndCancel(t *testing.T) {
	b := tiny(t, "hello")
	r := ready(t, b)
	write(t, r.dir()+".lock", "")
	held, err := b.lock(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var told []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Tell = func(line string) {
		told = append(told, line)
		cancel()
	}
	if _, err := b.Path(ctx, "hey"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if want := []string{"waiting for hey v0.1.4, which another process builds"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

func TestErrors(t *testing.T) {
	absent := t.TempDir()
	for _, c := range []struct{ name, version, more, sum, proxy, message, hint string }{
		{"no network", "v0.1.4", "", "github.com/rakyll/hey v0.1.4 h1:x=\ngithub.com/rakyll/hey v0.1.4/go.mod h1:x=\n", "off",
			"build hey: its modules cannot be fetched: ", "connect this host to a network once"},
		{"no sums", "v0.1.4", "", "", "off", "build hey: its modules are not those that are pinned: ", "nothing of it was used"},
		{"a module that is gone", "v0.1.4", "replace github.com/rakyll/hey => " + absent, "", "off", "build hey: ", ""},
	} {
		t.Setenv("GOPROXY", c.proxy)
		b := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: pinOf(c.version, c.more, c.sum)}
		path, err := b.Path(t.Context(), "hey")
		failed, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasPrefix(err.Error(), c.message) || !strings.Contains(failed.Hint, c.hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s, %v", c.name, path, err)
		}
		if left, err := filepath.Glob(filepath.Join(b.Dir, "*")); err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
			t.Errorf("%s: left %v, %v", c.name, left, err)
		}
	}
	b := tiny(t, "hello")
	if _, err := b.Path(t.Context(), "heyo"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown program: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := b.Path(t.Context(), "hey"); !errors.Is(err, ErrNoGo) {
		t.Errorf("without Go: %v", err)
	}
}

// A build of source that does not compile says where, and one that is ended
// leaves nothing.
func TestBuildsThatEnd(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module github.com/rakyll/hey\n\ngo 1.26.0\n")
	write(t, filepath.Join(module, "main.go"), "package main\n\nfunc main() { nonsense() }\n")
	b := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: pinOf("v0.1.4", "replace github.com/rakyll/hey => "+module, "")}
	if _, err := b.Path(t.Context(), "hey"); err == nil || !strings.HasSuffix(err.Error(), "main.go:3:15: undefined: nonsense") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Path(ended, "hey"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
