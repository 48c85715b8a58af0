package gobuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// interruptGrace is what the go command has to end its compilers in.
	interruptGrace = 5 * time.Second
	// keyDigits of a SHA-256 name a build.
	keyDigits = 12
	// linesMax of what the go command said are told.
	linesMax = 3
)

// flags of every build.
var flags = []string{"-mod=readonly", "-trimpath", "-buildvcs=false"}

// recipe is one program with all that decides what comes out.
type recipe struct {
	Program
	// mod and sum are the texts of the pin, source that of the program's own main
	// package, version what the pin says of the module.
	mod, sum, source []byte
	version          string
	// goCommand is the path of the go command, toolchain its version and target.
	goCommand string
	toolchain string
	// cache is the folder of all programs.
	cache string
}

// dir is where the program that is built here lies, alone; given where one does
// that was brought from another machine.
func (r recipe) dir() string { return r.place() + "-" + digits(r.toolchain) }

func (r recipe) given() string { return filepath.Join(r.place()+"-given", r.Name) }

func (r recipe) path() string { return filepath.Join(r.dir(), r.Name) }

// place is what both are called by what goes into the program, but for the
// toolchain.
func (r recipe) place() string {
	parts := slices.Concat([]string{runtime.GOARCH, r.importPath(), string(r.mod), string(r.sum), string(r.source)}, r.flags())
	if r.Test {
		parts = append(parts, "test")
	}
	return filepath.Join(r.cache, fmt.Sprintf("%s-%s-%s", r.Name, r.version, digits(parts...)))
}

// digits name a build by what goes in.
func digits(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d %s\n", len(part), part) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyDigits]
}

// flags of the build of the program.
func (r recipe) flags() []string {
	all := slices.Clone(flags)
	if r.Tags != "" {
		all = append(all, "-tags="+r.Tags)
	}
	link := "-s -w"
	if r.Cgo { // it runs where other libraries are, too
		link += " -linkmode external -extldflags -static"
	}
	for _, variable := range r.Stamps {
		link += " -X " + variable + "=" + r.version
	}
	return append(all, "-ldflags="+link)
}

// findGo finds the go command and asks for what it would build by.
func (r *recipe) findGo(ctx context.Context) (err error) {
	if r.goCommand, err = exec.LookPath("go"); err != nil {
		return fmt.Errorf("build %s: %w", r.Name, ErrNoGo)
	}
	cmd := r.command(ctx, "env", "GOVERSION", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140",
		"CGO_ENABLED", "CC", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_LDFLAGS")
	cmd.Dir = os.TempDir() // not where a go.mod may ask for another toolchain
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return r.failed(ctx, err, said.String())
	}
	r.toolchain = string(out)
	return nil
}

// command runs the go command with what the user set for fetching modules, and
// nothing of what would change what comes out.
func (r recipe) command(ctx context.Context, args ...string) *exec.Cmd {
	cgo := "CGO_ENABLED=0"
	if r.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, r.goCommand, args...)
	cmd.Env = append(os.Environ(), cgo,
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="+flags[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	return cmd
}

// build makes the program beside its place and moves it there when it is whole.
// The caller holds the lock of the recipe, so what lies beside is of a build that
// was killed: the go command and what it starts hold it, too, since they outlive a
// process that is killed.
func (r recipe) build(ctx context.Context, lock *os.File, progress func(done, total int)) (err error) {
	work := r.dir() + ".part"
	defer func() {
		if removeErr := os.RemoveAll(work); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("build %s: %w", r.Name, removeErr))
		}
	}()
	if err := r.lay(work); err != nil {
		return fmt.Errorf("build %s: %w", r.Name, err)
	}
	said := &output{}
	if progress != nil && !r.Test { // go test does not tell what it compiles
		total, err := r.stale(ctx, lock, work)
		if err != nil {
			return err
		}
		said.progress = func(done int) { progress(done, max(total, done)) }
	}
	out := filepath.Join(work, "out")
	verb := []string{"build", "-v", "-o", filepath.Join(out, r.Name)}
	if r.Test {
		verb = []string{"test", "-c", "-o", filepath.Join(out, r.Name)}
	}
	cmd := r.command(ctx, slices.Concat(verb, r.flags(), []string{r.importPath()})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = work, said, said, []*os.File{lock}
	if err := cmd.Run(); err != nil {
		return r.failed(ctx, err, said.rest.String())
	}
	if err := os.Rename(out, r.dir()); err != nil {
		return fmt.Errorf("build %s: %w", r.Name, err)
	}
	return nil
}

// stale counts the packages that a build compiles.
func (r recipe) stale(ctx context.Context, lock *os.File, work string) (int, error) {
	cmd := r.command(ctx, slices.Concat([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, r.flags(), []string{r.importPath()})...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = work, &said, []*os.File{lock}
	out, err := cmd.Output()
	if err != nil {
		return 0, r.failed(ctx, err, said.String())
	}
	return len(bytes.Fields(out)), nil
}

// output takes what go build -v says: each package as its compilation begins, on a
// line without a space, and the rest.
type output struct {
	progress func(done int)
	done     int
	line     []byte
	rest     bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	for _, line := range bytes.SplitAfter(p, []byte("\n")) {
		o.line = append(o.line, line...)
		if !bytes.HasSuffix(o.line, []byte("\n")) {
			continue
		}
		if len(bytes.Fields(o.line)) != 1 {
			o.rest.Write(o.line)
		} else if o.done++; o.progress != nil {
			o.progress(o.done)
		}
		o.line = o.line[:0]
	}
	return len(p), nil
}

// lay makes the folder of a build: a module that requires, and has a main package
// where the program has its own.
func (r recipe) lay(work string) error {
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(work, "out"), 0o755); err != nil {
		return err
	}
	if r.Source != "" {
		// The constraint keeps it out of the module that it is kept in.
		text := bytes.Replace(r.source, []byte("//go:build ignore\n"), nil, 1)
		if err := os.WriteFile(filepath.Join(work, "main.go"), text, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(work, "go.mod"), r.mod, 0o644),
		os.WriteFile(filepath.Join(work, "go.sum"), r.sum, 0o644))
}

// lock takes the build of a recipe for this process, and waits while another has
// it. The kernel lets go of it when its holders end, however they end.
func (b Builder) lock(ctx context.Context, r recipe) (*os.File, error) {
	f, err := os.OpenFile(r.dir()+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		if !told {
			b.tell("waiting for %s %s, which another process builds", r.Name, r.version)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(lockPause):
		}
	}
}

// Error says why a program could not be built.
type Error struct {
	Program string
	// Message says what is missing or wrong, Hint what to do about it.
	Message, Hint string
}

// Error names the program, then what is wrong.
func (e *Error) Error() string { return "build " + e.Program + ": " + e.Message }

// failed is the error of a go command that ended badly, by what it said.
func (r recipe) failed(ctx context.Context, err error, said string) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("build %s: %w", r.Name, context.Cause(ctx))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("build %s: %w", r.Name, ErrNoGo)
	}
	e := &Error{Program: r.Name, Message: firstLines(said, err)}
	for _, c := range causes {
		if slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(said, w) }) {
			e.Hint = c.hint
			if c.message != "" {
				e.Message = c.message + ": " + e.Message
			}
			break
		}
	}
	return e
}

// cause is what words of the go command mean to its user.
type cause struct {
	words         []string
	message, hint string
}

// causes are looked for in their order: the first that fits counts.
var causes = []cause{
	{
		[]string{"checksum mismatch", "missing go.sum entry"},
		"its modules are not those that are pinned",
		"the module proxy, or the pin, has been tampered with or is broken; nothing of it was used",
	},
	{
		[]string{"pkg-config", "C compiler \"gcc\" not found"},
		"a C library or compiler is missing",
		"apt-get install gcc pkg-config libseccomp-dev; ./setup kube does",
	},
	{
		[]string{"GOTOOLCHAIN=local"},
		"this Go is too old for it",
		"install the newer Go that is named there: https://go.dev/doc/install",
	},
	{
		[]string{"no space left on device"}, "",
		"free some space: the modules, the compiler's cache and the program need up to 3 GB",
	},
	{
		[]string{
			"dial tcp", "no such host", "i/o timeout", "connection refused", "network is unreachable", "proxyconnect", "TLS handshake",
			"disabled by GOPROXY=off", "server misbehaving", "unexpected EOF", "no such file or directory",
		},
		"its modules cannot be fetched",
		"connect this host to a network once, or set GOPROXY to a mirror that it reaches; what is built stays",
	},
}

// firstLines are the first telling lines of what the go command said.
func firstLines(said string, err error) string {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "go: downloading ") || strings.HasPrefix(line, "# ") {
			continue
		}
		if line == "to add:" || len(lines) == linesMax { // what follows is for a checkout
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return err.Error()
	}
	return strings.TrimRight(strings.Join(lines, "; "), ":;")
}
