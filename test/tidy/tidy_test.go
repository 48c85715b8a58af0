// Package tidy_test holds the repository to those rules of CONTRIBUTING.md that
// need the whole tree: sizes, names, documentation, package state, links. It
// judges no behaviour, and leaves to .golangci.yml what a linter can see.
// Start reading at rules; testdata has a tree that breaks each of them.
package tidy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// rule looks at a tree and says what breaks it, each as "FILE[:LINE]: what".
type rule struct {
	name  string
	check func(*tree) []string
}

var rules = []rule{
	{"file-length", fileLength},
	{"package-name", packageName},
	{"package-doc", packageDoc},
	{"no-init", noInit},
	{"no-state", noState},
	{"struct-size", structSize},
	{"has-test", hasTest},
	{"has-fuzz", hasFuzz},
	{"no-marker", noMarker},
	{"no-registry", noRegistry},
	{"page-length", pageLength},
	{"links", links},
	{"dependencies", dependencies},
}

// TestRepository holds the files that git knows or would add to every rule.
func TestRepository(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("no list of the repository's files: git ls-files: %v", err)
	}
	var files []string
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join("../..", name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	repository := newTree(t, os.DirFS("../.."), files)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, finding := range r.check(repository) {
				t.Error(finding)
			}
		})
	}
}

// TestRules holds each rule to a tree of testdata/NAME.txtar: what it must find
// there stands above the first file, and it must find something.
func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", r.name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{}
			var files []string
			for _, f := range archive.Files {
				fsys[f.Name] = &fstest.MapFile{Data: []byte(placeholders.Replace(string(f.Data)))}
				files = append(files, f.Name)
			}
			got := strings.Join(r.check(newTree(t, fsys, files)), "\n")
			want := strings.TrimSpace(placeholders.Replace(string(archive.Comment)))
			if want == "" {
				t.Error("the tree breaks no rule: nothing shows that the rule can fail")
			}
			if got != want {
				t.Errorf("found:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// placeholders let a tree of testdata hold what no file here may hold, and
// files of many lines.
var placeholders = strings.NewReplacer(
	"@MARKER@", markers[0],
	"@REGISTRY@", registries[0],
	"@500 LINES@", strings.Repeat("//\n", 500),
	"@120 LINES@", strings.Repeat("\n", 120),
	"@60 LINES@", strings.Repeat("\n", 60),
)

// tree is a set of files by slash-separated path, and the Go among them parsed.
type tree struct {
	files []string
	text  map[string]string
	code  map[string]*ast.File
	fset  *token.FileSet
}

func newTree(t *testing.T, fsys fs.FS, files []string) *tree {
	t.Helper()
	slices.Sort(files)
	r := &tree{files: files, text: map[string]string{}, code: map[string]*ast.File{}, fset: token.NewFileSet()}
	for _, name := range files {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		r.text[name] = string(b)
		if !strings.HasSuffix(name, ".go") || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		parsed, err := parser.ParseFile(r.fset, name, b, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(parsed) {
			r.code[name] = parsed
		}
	}
	return r
}

// goFiles lists the parsed files, in order: no generated code, no testdata.
func (t *tree) goFiles() []string {
	var names []string
	for _, name := range t.files {
		if t.code[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// folder is the Go of one folder, tests apart.
type folder struct {
	path        string
	code, tests []string
}

// folders lists the folders that hold Go, in order.
func (t *tree) folders() []folder {
	var list []folder
	for _, name := range t.goFiles() {
		dir := path.Dir(name)
		i := slices.IndexFunc(list, func(f folder) bool { return f.path == dir })
		if i < 0 {
			list = append(list, folder{path: dir})
			i = len(list) - 1
		}
		if strings.HasSuffix(name, "_test.go") {
			list[i].tests = append(list[i].tests, name)
		} else {
			list[i].code = append(list[i].code, name)
		}
	}
	return list
}

// at is the place of a node as FILE:LINE.
func (t *tree) at(p token.Pos) string {
	position := t.fset.Position(p)
	position.Column = 0
	return position.String()
}
