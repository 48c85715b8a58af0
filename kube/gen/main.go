// Command gen pins a release of Kubernetes: it writes pins/kubernetes.mod and
// pins/kubernetes.sum of the module in which kubernetes/main.go is built. Upstream
// develops some thirty modules in one tree and replaces them by folders; outside
// of it each is replaced by its release, v1.X.Y by v0.X.Y. Run it from kube, by
// go generate. With a PIN and PACKAGES it writes PIN.mod and PIN.sum of a module in
// which those packages and their tests are built instead.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const (
	kubernetes = "k8s.io/kubernetes"
	// staging is where the modules lie that are developed in the tree.
	staging = "./staging/src/"
	source  = "kubernetes/main.go"
	pin     = "pins/kubernetes"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "gen: usage: gen v1.X.Y [PIN PACKAGE...]")
		os.Exit(2)
	}
	to, packages := pin, []string(nil)
	if len(os.Args) > 2 {
		to, packages = os.Args[2], os.Args[3:]
	}
	if err := generate(os.Args[1], to, packages); err != nil {
		fmt.Fprintf(os.Stderr, "gen: error: %v\n", err)
		os.Exit(1)
	}
}

func generate(version, to string, packages []string) error {
	upstream, err := goMod(version)
	if err != nil {
		return err
	}
	mod, err := outside(upstream, version, to, packages)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "skerry-gen-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files := map[string][]byte{"go.mod": mod}
	if len(packages) == 0 {
		program, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		files["main.go"] = bytes.Replace(program, []byte("//go:build ignore\n"), nil, 1)
	}
	return settle(dir, files, to)
}

// goMod is the go.mod of the release.
func goMod(version string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", kubernetes+"@"+version)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("download %s %s: %w", kubernetes, version, err)
	}
	var at struct{ GoMod string }
	if err := json.Unmarshal(out.Bytes(), &at); err != nil {
		return nil, fmt.Errorf("download %s %s: %w", kubernetes, version, err)
	}
	return os.ReadFile(at.GoMod)
}

// outside is a go.mod called as its pin that requires the release, replaces what
// upstream's replaces by folders of its tree, and keeps packages as tools.
func outside(upstream []byte, version, to string, packages []string) ([]byte, error) {
	if !semver.IsValid(version) || semver.Major(version) != "v1" {
		return nil, fmt.Errorf("%q is no version of Kubernetes: write v1.X.Y", version)
	}
	theirs, err := modfile.Parse("go.mod", upstream, nil)
	if err != nil {
		return nil, err
	}
	ours := new(modfile.File)
	released := "v0" + strings.TrimPrefix(version, "v1")
	for _, err := range []error{
		ours.AddModuleStmt("skerry.dev/skerry/" + to),
		ours.AddGoStmt(theirs.Go.Version),
		ours.AddRequire(kubernetes, version),
	} {
		if err != nil {
			return nil, err
		}
	}
	for _, g := range theirs.Godebug {
		if err := ours.AddGodebug(g.Key, g.Value); err != nil {
			return nil, err
		}
	}
	for _, r := range theirs.Require {
		if !staged(theirs, r.Mod) {
			err = ours.AddRequire(r.Mod.Path, r.Mod.Version)
		} else if holds(r.Mod, packages) {
			err = ours.AddRequire(r.Mod.Path, released)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, r := range theirs.Replace {
		if strings.HasPrefix(r.New.Path, staging) {
			if err := ours.AddReplace(r.Old.Path, "", r.Old.Path, released); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range packages {
		if err := ours.AddTool(p); err != nil {
			return nil, err
		}
	}
	return ours.Format()
}

// staged says that a module is developed in upstream's tree.
func staged(f *modfile.File, m module.Version) bool {
	for _, r := range f.Replace {
		if r.Old.Path == m.Path && strings.HasPrefix(r.New.Path, staging) {
			return true
		}
	}
	return false
}

// holds says that one of the packages is of a module.
func holds(m module.Version, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(p+"/", m.Path+"/") })
}

// settle has the go command find what the module's files need, and its sums.
func settle(dir string, files map[string][]byte, to string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	tidy := exec.Command("go", "mod", "tidy")
	tidy.Dir, tidy.Stderr = dir, os.Stderr
	if err := tidy.Run(); err != nil {
		return fmt.Errorf("go mod tidy: %w", err)
	}
	for _, kind := range []string{"mod", "sum"} {
		text, err := os.ReadFile(filepath.Join(dir, "go."+kind))
		if err != nil {
			return err
		}
		if err := os.WriteFile(to+"."+kind, text, 0o644); err != nil { //nolint:gosec // a source file
			return err
		}
	}
	return nil
}
