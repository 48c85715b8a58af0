// Package setup_test runs the setup script of the repository on hosts that are
// made up: a path with stand-ins for apt-get, dpkg-query and the programs that
// setup looks for. It installs nothing. Start reading at testdata.
package setup_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// basics are what every Debian host has, and all that a script here finds
// beside its own stand-ins.
var basics = []string{"bash", "cat", "chmod", "dirname", "grep", "head", "id", "mount", "rm", "sed", "sh", "sleep", "sort", "unshare"}

func TestSetup(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			return madeUpHost(env, root)
		},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return os.Getuid() == 0, nil
		},
		RequireExplicitExec: true,
	})
}

// madeUpHost copies setup and go.mod into the script's folder and leaves bin/,
// host/ and sbin/ as the whole path.
func madeUpHost(env *testscript.Env, root string) error {
	for _, name := range []string{"setup", "go.mod"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(env.WorkDir, name), b, 0o755); err != nil {
			return err
		}
	}
	host := filepath.Join(env.WorkDir, "host")
	if err := os.MkdirAll(host, 0o755); err != nil {
		return err
	}
	for _, name := range basics {
		path, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(host, name)); err != nil {
			return err
		}
	}
	for name, body := range standIns {
		if err := os.WriteFile(filepath.Join(host, name), []byte(body), 0o755); err != nil {
			return err
		}
	}
	own, err := filepath.Glob(filepath.Join(env.WorkDir, "bin", "*"))
	if err != nil {
		return err
	}
	for _, path := range own {
		if err := os.Chmod(path, 0o755); err != nil {
			return err
		}
	}
	env.Setenv("PATH", filepath.Join(env.WorkDir, "bin")+":"+host)
	return nil
}

// standIns answer as on a host with Go 1.26, a compiler for C and no other package
// installed. A script puts its own into bin/, which comes first on the path.
var standIns = map[string]string{
	"go":         "#!/bin/sh\necho go1.26.8\n",
	"gcc":        "#!/bin/sh\n",
	"meson":      "#!/bin/sh\n",
	"dpkg-query": "#!/bin/sh\ncase \"$*\" in *libc6-dev | *libxdp-dev) echo installed; exit ;; esac\necho not-installed\nexit 1\n",
}
