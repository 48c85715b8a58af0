package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

// labUp takes a lab up until the test ends, and gives a function that runs skerry.
func labUp(t *testing.T, suffix string) (name string, run func(args ...string) string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a lab is made")
	}
	name = fmt.Sprintf("test-%d-%s", os.Getpid(), suffix)
	run = func(args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(bin, "skerry"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("up", "testdata/small.yaml", "--name", name)
	t.Cleanup(func() { run("down", name) })
	return name, run
}

// began waits until a command has said something, and gives the rest of what it
// says once it has ended.
func began(t *testing.T, word string, args ...string) (cmd *exec.Cmd, rest func() string) {
	t.Helper()
	cmd = exec.Command(filepath.Join(bin, "skerry"), args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := make([]byte, 0, 1<<16)
	for !strings.Contains(string(said), word) {
		n, err := out.Read(said[len(said):cap(said)])
		if said = said[:len(said)+n]; err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	return cmd, func() string {
		more, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit status is what is asked for
		return string(more)
	}
}

// packetsIn reads a capture that may end within a block.
func packetsIn(t *testing.T, path string) (n int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	for err == nil {
		if _, _, err = r.ReadPacketData(); err == nil {
			n++
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return n
}

// A capture that is killed leaves what it had captured.
func TestCaptureKilled(t *testing.T) {
	name, run := labUp(t, "capture")
	path := filepath.Join(t.TempDir(), "killed.pcapng")
	cmd, rest := began(t, "capturing", "capture", name, "c1", "c2", "--out", path)
	run("exec", name, "c1/worker", "--", "ping", "-c", "20", "-i", "0.01", "c2-worker")
	const pings, places = 20, 4
	for range 100 { // a round of the capture is far shorter
		if packetsIn(t, path) == pings*places {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest()
	if n := packetsIn(t, path); n != pings*places {
		t.Errorf("%d packets are in the file, want %d", n, pings*places)
	}
}

// Ctrl-C ends a capture in order: status 0, and what was counted is told.
func TestCaptureInterrupted(t *testing.T) {
	name, run := labUp(t, "captured")
	path := filepath.Join(t.TempDir(), "interrupted.pcapng")
	cmd, rest := began(t, "capturing", "capture", name, "c1/worker", "--out", path)
	run("exec", name, "c1/worker", "--", "ping", "-c", "3", "-i", "0.01", "c2-worker")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	said := rest()
	if cmd.ProcessState.ExitCode() != 0 || !strings.Contains(said, "c1/worker received") {
		t.Errorf("exit status %d\n%s", cmd.ProcessState.ExitCode(), said)
	}
}

// Ctrl-C and the end of the terminal undo a fault that is for a time; kill -9 leaves
// it to be undone.
func TestFaultInterruptedAndKilled(t *testing.T) {
	name, run := labUp(t, "fault")
	reaches := func() bool {
		return exec.Command(filepath.Join(bin, "skerry"), "exec", name, "c1/worker", "--", "ping", "-c", "1", "-W", "0.3", "c2-worker").Run() == nil
	}
	ends := []syscall.Signal{syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) { // else skerry ignores it, too
		ends = append(ends, syscall.SIGHUP)
	}
	for i, end := range ends {
		cmd, rest := began(t, fmt.Sprintf("fault %d: cut", i+1), "fault", "cut", name, "c1", "c2", "--for", "1h")
		if reaches() {
			t.Error("the link is not cut")
		}
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if said := rest(); cmd.ProcessState.ExitCode() != 0 || !strings.Contains(said, fmt.Sprintf("fault %d is undone after ", i+1)) {
			t.Errorf("exit status %d\n%s", cmd.ProcessState.ExitCode(), said)
		}
		if !reaches() {
			t.Errorf("the link is cut after signal %s", end)
		}
	}
	cmd, rest := began(t, ": cut", "fault", "cut", name, "c1", "c2", "--for", "1h")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest()
	if list := run("fault", "list", name); reaches() || !strings.Contains(list, "cut") {
		t.Errorf("after kill -9 the list is\n%s", list)
	}
	run("fault", "undo", name)
	if !reaches() {
		t.Error("the link is cut after undo")
	}
}
