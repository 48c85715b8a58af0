// Package guest boots Debian's cloud kernel in QEMU with one program as its only
// process, on a host whose own kernel lacks what the program needs. Time in the
// guest counts instructions, so that a busy host does not show, and nothing in it
// is left to chance: the same program does the same each time. It says nothing about
// how fast anything is. The guest has no disk and no network card; what its program
// prints comes out here. Start at Machine.Run on the host; the program begins with
// Prepare and ends with End where it is Inside.
package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// exitMark begins the guest's last line, the exit code of its program.
const exitMark = "guest: exit "

// Machine is a guest that is to run.
type Machine struct {
	// Init is the file of its program, which Build has built.
	Init string
	// Args are the program's arguments, without spaces.
	Args []string
	// Programs of this host that its program starts, by name or path: they are in /bin
	// of the guest, which is the path there.
	Programs []string
	// Files are further ones of this host, by their paths in the guest.
	Files map[string]string
	// Modules that it loads beside those of links.
	Modules []string
	// Large is a guest of 4 GiB of memory, for a program that does much: its one core
	// does twice as much in its own time as others' do. It takes some minutes of this
	// host's for each of its own.
	Large bool
}

// MissingError says what this host lacks to run a guest.
type MissingError struct {
	// What is missing, and how it comes here.
	What, Hint string
}

// Error prints both on one line.
func (e *MissingError) Error() string { return e.What + ": " + e.Hint }

// Needs says what this host lacks to run a guest, as a *MissingError: QEMU, or the
// kernel that test/guest/fetch.sh downloads.
func Needs() error {
	_, _, err := find()
	return err
}

// find QEMU and the folder of the kernel.
func find() (qemu, kernel string, err error) {
	const program = "qemu-system-x86_64"
	qemu, err = exec.LookPath(program)
	if err != nil {
		return "", "", &MissingError{"no " + program + " on the path", "apt-get install --no-install-recommends qemu-system-x86"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("find the guest's kernel: %w", err)
	}
	kernel = filepath.Join(cache, "skerry", "guest", "kernel")
	if _, err := os.Stat(filepath.Join(kernel, "vmlinuz")); err != nil {
		return "", "", &MissingError{"no kernel for the guest in " + kernel, "test/guest/fetch.sh downloads it (with apt-get download)"}
	}
	return qemu, kernel, nil
}

// Build builds a package for the guest into a file, by a command of Go: "build", or
// "test", "-c".
func Build(ctx context.Context, file, pkg string, command ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(command, "-ldflags=-s -w", "-o", file, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the guest's program: %w\n%s", err, output)
	}
	return nil
}

// Run boots the guest and returns when its program has ended. What the guest says
// goes to out as it is said. The error is a *MissingError where Needs has one, and
// ErrFailed where the program ended by another code than 0.
func (m Machine) Run(ctx context.Context, out io.Writer) (err error) {
	qemu, kernel, err := find()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "skerry-guest-")
	if err != nil {
		return fmt.Errorf("make a folder for the guest: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	image := filepath.Join(folder, "initrd")
	if err := m.writeImage(ctx, image, kernel); err != nil {
		return fmt.Errorf("write the guest's files: %w", err)
	}
	said := &console{out: out}
	cmd := exec.CommandContext(ctx, qemu, append(m.hardware(),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-kernel", filepath.Join(kernel, "vmlinuz"), "-initrd", image,
		"-append", "console=ttyS0 quiet panic=-1 -- "+strings.Join(m.Args, " "))...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the guest: %w", errors.Join(err, ctx.Err()))
	}
	switch said.code {
	case "0":
		return nil
	case "":
		return fmt.Errorf("%w: it ended before its program did", ErrFailed)
	}
	return fmt.Errorf("%w: its program ended by %s", ErrFailed, said.code)
}

// hardware that QEMU makes: a core whose clock counts instructions, so that a guest
// repeats what it did, and is never late by its own clock, however slow this host is.
func (m Machine) hardware() []string {
	shift, memory := "1", "1024" // an instruction takes 2 ns
	if m.Large {
		shift, memory = "0", "4096"
	}
	return []string{
		"-accel", "tcg,thread=single", "-icount", "shift=" + shift + ",sleep=off", "-smp", "1", "-m", memory,
		"-seed", "1", "-rtc", "base=2026-01-01,clock=vm",
	}
}

// ErrFailed says that the guest did not end well; what it said tells why.
var ErrFailed = errors.New("guest failed")

// console passes on what the guest says and looks for the exit code.
type console struct {
	out  io.Writer
	line []byte
	code string
}

// Write implements io.Writer.
func (c *console) Write(b []byte) (int, error) {
	text := bytes.ReplaceAll(b, []byte("\r"), nil)
	if _, err := c.out.Write(text); err != nil {
		return 0, err
	}
	c.line = append(c.line, text...)
	for {
		line, rest, found := bytes.Cut(c.line, []byte("\n"))
		if !found {
			return len(b), nil
		}
		if code, ok := bytes.CutPrefix(line, []byte(exitMark)); ok {
			c.code = string(code)
		}
		c.line = rest
	}
}
