package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ctrl-C at 'skerry exec' belongs to the program in the node: it ends in its own
// way, and its exit status is the command's.
func TestExecInterrupted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a lab is made")
	}
	name := fmt.Sprintf("test-%d-interrupt", os.Getpid())
	skerry := filepath.Join(bin, "skerry")
	if out, err := exec.Command(skerry, "up", "testdata/small.yaml", "--name", name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(skerry, "down", name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	const script = `trap 'echo bye; exit 42' INT; echo on; while :; do sleep 0.02; done`
	cmd := exec.Command(skerry, "exec", name, "c1/head", "--", "sh", "-c", script)
	// A process group of its own, as a terminal makes it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); lines.Text() == "on" {
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the exit status is what is asked for
	if status := cmd.ProcessState.ExitCode(); status != 42 || strings.Join(said, " ") != "on bye" || stderr.Len() > 0 {
		t.Errorf("exit status %d, stdout %q, stderr %q", status, said, stderr.String())
	}
}
