// Package readme_test runs the command lines of README.md as a reader would:
// in a fresh copy of the working tree with bin/ on the path. It passes over
// make run and make test, which install packages and run the tests themselves;
// CI runs make test, and a person make run before a release. Start reading at
// TestREADME; what a console block is stands at commands.
package readme_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/test/quiet"
)

// commandMax bounds one command of the README.
const commandMax = 5 * time.Minute

// byOthers are run by CI and by hand: they would run this test again.
var byOthers = []string{"make run", "make test"}

// command is one line of a console block and what is printed below it.
type command struct {
	line   int
	text   string
	output []string
}

func TestREADME(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	list := commands(string(page))
	if len(list) == 0 {
		t.Fatal("README.md shows no command: no line of a console block begins with '$ '")
	}
	if testing.Short() {
		t.Skip("the README's commands measure: not in a short run")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: the README's commands make network namespaces")
	}
	dir := copyTree(t)
	for _, c := range list {
		t.Run(fmt.Sprintf("line %d", c.line), func(t *testing.T) {
			if slices.Contains(byOthers, strings.TrimPrefix(c.text, "sudo ")) {
				t.Skipf("%s is run by CI or by hand", c.text)
			}
			quiet.Timed(t)
			got, err := run(t.Context(), dir, c.text)
			if err == nil {
				err = compare(c.output, got)
			}
			if err != nil {
				t.Errorf("README.md:%d: $ %s: %v\nit printed:\n%s", c.line, c.text, err, got)
			}
		})
	}
}

// copyTree copies what git knows or would add, and builds the programs there.
func copyTree(t *testing.T) string {
	t.Helper()
	const root = "../.."
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("no list of the repository's files: git ls-files: %v", err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "bin")+"/", "./cmd/...")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm())
}

// run gives a command to bash and returns all that it printed. The test is root
// already, so a leading sudo is left out: it would take the path away.
func run(ctx context.Context, dir, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.TrimPrefix(text, "sudo "))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	// An interrupt lets the lab take its namespaces down.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("still running after %s", commandMax)
	}
	return string(out), err
}

// commands lists the lines that begin with "$ " in the console blocks of a
// page, each with the output shown below it. A line that ends with a backslash
// goes on in the next.
func commands(page string) []command {
	var list []command
	console, goesOn := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			console = !console && line == "```console"
			goesOn = false
		case !console:
		case goesOn:
			last := &list[len(list)-1]
			last.text = strings.TrimSuffix(last.text, `\`) + strings.TrimSpace(line)
			goesOn = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "$ "):
			list = append(list, command{line: i + 1, text: strings.TrimSpace(line[2:])})
			goesOn = strings.HasSuffix(line, `\`)
		case len(list) > 0 && strings.TrimSpace(line) != "":
			last := &list[len(list)-1]
			last.output = append(last.output, line)
		}
	}
	return list
}

var spaces = regexp.MustCompile(`\s+`)

// compare wants every line of want in got, in that order; other lines may lie
// between. … in a line stands for any text, and white space for any white space.
func compare(want []string, got string) error {
	rest := strings.Split(got, "\n")
	for _, line := range want {
		pattern := regexp.QuoteMeta(plain(line))
		pattern = "^" + strings.ReplaceAll(pattern, "…", ".*") + "$"
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rest, func(s string) bool { return re.MatchString(plain(s)) })
		if i < 0 {
			return fmt.Errorf("no line like %q, or not in this order", line)
		}
		if strings.Trim(line, " …") != "" {
			rest = rest[i+1:]
		}
	}
	return nil
}

func plain(line string) string { return strings.TrimSpace(spaces.ReplaceAllString(line, " ")) }
