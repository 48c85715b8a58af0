package programs

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var built string

func TestMain(m *testing.M) { os.Exit(Main(m, func(dir string) { built = dir })) }

func TestProgramsStart(t *testing.T) {
	for _, name := range []string{"skerry", "skerry-agent"} {
		if out, err := exec.Command(filepath.Join(built, name), "--help").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// Tests that are interrupted leave no programs behind, and with them no lab.
func TestInterrupted(t *testing.T) {
	const asChild = "SKERRY_TEST_INTERRUPTED"
	if os.Getenv(asChild) != "" {
		fmt.Println(built)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInterrupted$")
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	folder, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = cmd.Process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it fails, as it should
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(strings.TrimSpace(folder)); os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s stays", folder)
		}
	}
}
