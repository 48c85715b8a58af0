package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/test/quiet"
)

// bin is the folder of the programs that TestMain builds.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { bin = dir }))
}

// TestScripts runs the built programs as a user does. Every script has
// small.yaml, and $LAB and $OTHER as names for labs, which are taken down.
func TestScripts(t *testing.T) {
	small, err := os.ReadFile("testdata/small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			script := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
			lab := fmt.Sprintf("test-%d-%s", os.Getpid(), script)
			e.Setenv("LAB", lab)
			e.Setenv("OTHER", lab+"-other")
			e.Setenv("BIN", bin)
			e.Setenv("XDG_CACHE_HOME", cache) // with the programs that are built
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Defer(func() {
				for _, name := range []string{lab, lab + "-other"} {
					// Most are not up any more.
					_ = exec.Command(filepath.Join(bin, "skerry"), "down", name).Run()
				}
			})
			return os.WriteFile(filepath.Join(e.WorkDir, "small.yaml"), small, 0o644)
		},
		Condition: func(name string) (bool, error) {
			if script, ok := strings.CutPrefix(name, "robbed:"); ok {
				_, is := robbed.Load(script)
				return is, nil
			}
			if program, ok := strings.CutPrefix(name, "built:"); ok {
				_, err := gobuild.Path(t.Context(), program)
				return err == nil, nil
			}
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "ipvs":
				_, err := netlink.GenlFamilyGet("IPVS")
				return err == nil, nil
			case "kubernetes":
				// Whether the programs of clusters are built.
				return len(gobuild.Builder{Catalogue: kube.Catalogue()}.Lacking(t.Context())) == 0, nil
			case "userspace":
				// Whether links are emulated by a process of ours.
				out, err := exec.Command(filepath.Join(bin, "skerry"), "doctor").Output()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					return false, err
				}
				return regexp.MustCompile(`(?m)^ok +links: userspace`).Match(out), nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fails": fails, "absent": absent, "imagine": imagine, "counted": counted},
	})
}

var (
	errorLine = regexp.MustCompile(`^skerry: error: [^\s].*[^.]$`)
	// removedLine is of other runs on this machine: what they left is removed by
	// whichever run is next, and tests beside these kill runs.
	removedLine = regexp.MustCompile(`^removed lab [a-z0-9-]+, which a killed run had left$`)
)

// fails runs skerry and holds its exit status and that stderr is progress, one
// clear line, and at most one hint: fails STATUS COMMAND [ARG...]. A script goes
// on with 'stderr' for the words.
func fails(ts *testscript.TestScript, _ bool, args []string) {
	var stderr, stdout bytes.Buffer
	cmd := exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh"}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	ts.Logf("%s%s", &stdout, &stderr)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
	errorLines, hints := 0, 0
	for line := range strings.Lines(stderr.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case errorLine.MatchString(line):
			errorLines++
		case strings.HasPrefix(line, "skerry: hint: "):
			hints++
		case !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "rejected: ") && !removedLine.MatchString(line):
			ts.Fatalf("stderr has the line %q", line)
		}
	}
	if errorLines != 1 || hints != 1 {
		ts.Fatalf("stderr has %d errors and %d hints, want one of each", errorLines, hints)
	}
	ts.Check(os.WriteFile(ts.MkAbs("said"), stderr.Bytes(), 0o644))
}

// robbed are scripts whose repetitions did not count, by what a hypervisor took.
var robbed sync.Map

// counted runs an experiment until its repetitions count and its claims are decided, each
// further time on a machine that is its own again: counted OUT COMMAND [ARG...]. Where
// repetitions never count the script goes on with '[robbed:SCRIPT] skip'; of claims it is
// to say itself what it wants of them.
func counted(ts *testscript.TestScript, _ bool, args []string) {
	const tries = 3
	rejected := false
	for range tries {
		before, err := quiet.Now()
		ts.Check(err)
		ts.Check(os.RemoveAll(ts.MkAbs(args[0])))
		ts.Check(ts.Exec(args[1], append(slices.Clone(args[2:]), "--out", args[0])...))
		rejected = strings.Contains(ts.ReadFile("stderr"), "try 3 of 3: ")
		if !rejected && !strings.Contains(ts.ReadFile("stdout"), " inconclusive: ") {
			return
		}
		after, err := quiet.Now()
		ts.Check(err)
		if rejected && after.Since(before) < quiet.Taken {
			return // not by the hypervisor: the script is to say what is wrong
		}
		_, err = quiet.Await(context.Background())
		ts.Check(err)
	}
	if rejected {
		robbed.Store(strings.TrimPrefix(filepath.Base(ts.Getenv("WORK")), "script-"), true)
	}
}

// absent holds that nothing on the machine bears a lab's name: absent LAB.
func absent(ts *testscript.TestScript, _ bool, args []string) {
	for _, pattern := range []string{"/run/skerry/", "/sys/fs/cgroup/skerry/", "/sys/fs/cgroup/*/skerry/"} {
		found, err := filepath.Glob(pattern + args[0] + "*")
		ts.Check(err)
		if len(found) > 0 {
			ts.Fatalf("left: %v", found)
		}
	}
}
