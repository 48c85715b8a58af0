// Package programs builds Skerry's programs for tests that start them. It is
// for tests alone. Start at Main, which TestMain calls.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Main builds skerry and the programs beside it into a folder of their own, tells it to
// use, runs the tests and removes the folder. It returns the exit status. Of a fuzzer,
// each of whose workers would build them, it builds none.
func Main(m *testing.M, use func(dir string)) int {
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz") }) {
		return m.Run()
	}
	dir, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build programs:", err)
		return 1
	}
	use(dir)
	interrupted, ended := make(chan os.Signal, 1), make(chan int, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() { ended <- m.Run() }()
	select {
	case status := <-ended:
		_ = os.RemoveAll(dir) // a folder that stays harms no test
		return status
	case <-interrupted:
		cleanBehind(dir)
		return 1
	}
}

// build builds into a folder of its own.
func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "skerry-test-"); err != nil {
		return "", err
	}
	// Tests that are not root start the programs, too.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir,
		"skerry.dev/skerry/cmd/skerry", "skerry.dev/skerry/cmd/skerry-agent", "skerry.dev/skerry/cmd/skerry-gateway", "skerry.dev/skerry/cmd/skerry-proxy")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, dataPlane(dir)
}

// dataPlane puts the overlay's programs beside the others, which are of C and built by
// overlay/dataplane/build.sh, where they are.
func dataPlane(dir string) error {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	bin := filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "bin")
	for _, name := range []string{"ktsnd", "ktsn-bench", "ktsn-talker", "libktsn.so"} {
		built := filepath.Join(bin, name)
		if _, err := os.Stat(built); err != nil {
			continue // tests that need it say so
		}
		if err := os.Symlink(built, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// cleanBehind begins what takes down the labs of this process when that has ended, whose
// names begin with test-PID, and removes the folder of programs.
func cleanBehind(dir string) {
	const script = `while kill -0 "$1"; do sleep 0.05; done
for lab in /run/skerry/test-"$1"-*; do
	[ -d "$lab" ] && "$0/skerry" down "${lab##*/}"
done
rm -rf "$0"`
	cmd := exec.Command("sh", "-c", script, dir, strconv.Itoa(os.Getpid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "take labs down:", err)
	}
}
