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

// flags of every build. The environment adds that cgo is off.
var flags = []string{"-mod=readonly", "-trimpath", "-buildvcs=false"}

// recipe is one program with all that decides what comes out.
type recipe struct {
	program
	// mod and sum are the texts of the pin, version what it says of the module.
	mod, sum []byte
	version  string
	// goCommand is the path of the go command, toolchain its version and target.
	goCommand string
	toolchain string
	// dir is where the built program lies, alone.
	dir string
}

func (r recipe) path() string { return filepath.Join(r.dir, r.name) }

// key names what comes out by what goes in.
func (r recipe) key() string {
	sum := sha256.New()
	for _, part := range slices.Concat([]string{r.importPath(), string(r.mod), string(r.sum), r.toolchain}, flags) {
		_, _ = fmt.Fprintf(sum, "%d %s\n", len(part), part) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyDigits]
}

// findGo finds the go command and asks for what it would build by.
func (r *recipe) findGo(ctx context.Context) (err error) {
	if r.goCommand, err = exec.LookPath("go"); err != nil {
		return fmt.Errorf("build %s: %w", r.name, ErrNoGo)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, r.goCommand, "env", "GOVERSION", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	cmd.Env, cmd.Stderr = environment(), &said
	cmd.Dir = os.TempDir() // not where a go.mod may ask for another toolchain
	out, err := cmd.Output()
	if err != nil {
		return r.failed(ctx, err, said.String())
	}
	r.toolchain = string(out)
	return nil
}

// environment has what the user set for fetching modules, and nothing of what
// would change what comes out.
func environment() []string {
	return append(os.Environ(),
		"CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="+flags[0])
}

// build makes the program beside its place and moves it there when it is whole.
// The caller holds the lock of the recipe, so what lies beside is of a build that
// was killed.
func (r recipe) build(ctx context.Context) (err error) {
	work := r.dir + ".part"
	defer func() {
		if removeErr := os.RemoveAll(work); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("build %s: %w", r.name, removeErr))
		}
	}()
	if err := r.lay(work); err != nil {
		return fmt.Errorf("build %s: %w", r.name, err)
	}
	out := filepath.Join(work, "out")
	args := slices.Concat([]string{"build", "-o", filepath.Join(out, r.name)}, flags, []string{r.importPath()})
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, r.goCommand, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = work, environment(), &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	if err := cmd.Run(); err != nil {
		return r.failed(ctx, err, said.String())
	}
	if err := os.Rename(out, r.dir); err != nil {
		return fmt.Errorf("build %s: %w", r.name, err)
	}
	return nil
}

// lay makes the folder of a build: a module that only requires.
func (r recipe) lay(work string) error {
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(work, "out"), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(work, "go.mod"), r.mod, 0o644),
		os.WriteFile(filepath.Join(work, "go.sum"), r.sum, 0o644))
}

// lock takes the build of a recipe for this process, and waits while another has
// it. The kernel lets go of it when its holder ends, however it ends.
func (b Builder) lock(ctx context.Context, r recipe) (*os.File, error) {
	f, err := os.OpenFile(r.dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
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
			b.tell("waiting for %s %s, which another process builds", r.name, r.version)
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
		return fmt.Errorf("build %s: %w", r.name, context.Cause(ctx))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("build %s: %w", r.name, ErrNoGo)
	}
	e := &Error{Program: r.name, Message: firstLines(said, err)}
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
