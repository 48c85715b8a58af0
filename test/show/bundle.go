package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"skerry.dev/skerry/kube"
)

// otherMinor is a release of Kubernetes of another minor than the pinned one.
const otherMinor = "v1.35.0"

const bundleCommand = "make show AREA=bundle"

// caches are those of the go command and of Skerry, in a folder of their own.
type caches struct{ dir string }

// command is a program that has nothing but these caches.
func (c caches) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr // minutes pass
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+c.dir, "GOCACHE="+filepath.Join(c.dir, "build"), "GOMODCACHE="+filepath.Join(c.dir, "modules"), "GOFLAGS=-modcacherw")
	return cmd
}

// upAndDown takes a file's lab up and down again.
func (c caches) upAndDown(ctx context.Context, skerry, file string, within func(name string) error) (err error) {
	name := fmt.Sprintf("show-%d", os.Getpid())
	if err := c.command(ctx, skerry, "up", file, "--name", name).Run(); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	defer func() {
		err = errors.Join(err, c.command(context.WithoutCancel(ctx), skerry, "down", name).Run())
	}()
	return within(name)
}

// serverVersion is what an API server says of itself to the kubectl that was built with it.
func (c caches) serverVersion(ctx context.Context, skerry, kubeconfig string) (string, error) {
	list, err := c.command(ctx, skerry, "kube", "list").Output()
	if err != nil {
		return "", fmt.Errorf("kube list: %w", err)
	}
	for row := range strings.Lines(string(list)) {
		fields := strings.Fields(row)
		if len(fields) == 0 || fields[0] != kube.Kubernetes {
			continue
		}
		said, err := c.command(ctx, fields[len(fields)-1], "kubectl", "--kubeconfig", kubeconfig, "get", "--raw", "/version").Output()
		if err != nil {
			return "", fmt.Errorf("kubectl: %w", err)
		}
		var version struct{ GitVersion string }
		err = json.Unmarshal(said, &version)
		return version.GitVersion, err
	}
	return "", fmt.Errorf("kube list does not name %s", kube.Kubernetes)
}

// showBundle builds what clusters are made of from empty caches, carries it to where
// there is no compiler, and pins another minor of Kubernetes.
func showBundle(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "skerry-bundle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	skerry := filepath.Join(filepath.Dir(b.agent), "skerry")
	built := caches{filepath.Join(dir, "built")}
	if err := b.fromEmptyCaches(ctx, skerry, built); err != nil {
		return err
	}
	if err := b.carried(ctx, skerry, built, dir); err != nil {
		return err
	}
	return b.pinned(ctx, built, filepath.Join(dir, "tree"))
}

func (b *bench) fromEmptyCaches(ctx context.Context, skerry string, empty caches) error {
	const most = 20 * time.Minute
	began := time.Now()
	if err := empty.command(ctx, skerry, "kube", "build").Run(); err != nil {
		return fmt.Errorf("kube build: %w", err)
	}
	took := time.Since(began)
	b.print(line{
		what: fmt.Sprintf("%d programs of clusters from empty caches, modules too", len(kube.Catalogue().Programs)),
		seen: took.Round(time.Second).String(), bound: "<= " + most.String(), pass: took <= most, command: bundleCommand,
	})
	return nil
}

// carried takes a lab up by programs that came as a file, with no go command to find.
func (b *bench) carried(ctx context.Context, skerry string, from caches, dir string) error {
	file, other := filepath.Join(dir, "kube.bundle"), caches{filepath.Join(dir, "other")}
	began := time.Now()
	if err := from.command(ctx, skerry, "kube", "bundle", "export", file).Run(); err != nil {
		return fmt.Errorf("kube bundle export: %w", err)
	}
	exported := time.Since(began)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	began = time.Now()
	if err := other.command(ctx, skerry, "kube", "bundle", "import", file).Run(); err != nil {
		return fmt.Errorf("kube bundle import: %w", err)
	}
	imported := time.Since(began)
	const noGo = "/usr/sbin:/usr/bin:/sbin:/bin"
	before := os.Getenv("PATH")
	if err := os.Setenv("PATH", noGo); err != nil {
		return err
	}
	_, goErr := exec.LookPath("go")
	err = other.upAndDown(ctx, skerry, "experiments/kubernetes.yaml", func(string) error { return nil })
	if err := errors.Join(err, os.Setenv("PATH", before)); err != nil {
		return err
	}
	b.print(line{
		what:  "a lab of Kubernetes by a bundle, without a go command",
		seen:  fmt.Sprintf("%.0f MB, exported in %.1f s, imported in %.1f s", float64(info.Size())/1e6, exported.Seconds(), imported.Seconds()),
		bound: "all pods ready", pass: errors.Is(goErr, exec.ErrNotFound), command: bundleCommand,
	})
	return nil
}

// pinned changes the line of kube that says the release, has its pin written, and takes
// a lab of that release up.
func (b *bench) pinned(ctx context.Context, c caches, tree string) error {
	if err := c.command(ctx, "git", "clone", "--quiet", ".", tree).Run(); err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	path := filepath.Join(tree, "kube", "kube.go")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	release := regexp.MustCompile(`(?m)^//go:generate go run \./gen v.*$`)
	if n := len(release.FindAll(text, -1)); n != 1 {
		return fmt.Errorf("%s: %d lines say the release", path, n)
	}
	if err := os.WriteFile(path, release.ReplaceAll(text, []byte("//go:generate go run ./gen "+otherMinor)), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"generate", "./kube"}, {"build", "-o", "bin/", "./cmd/..."}} {
		cmd := c.command(ctx, "go", args...)
		cmd.Dir, cmd.Env = tree, append(cmd.Env, "CGO_ENABLED=0")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go %s: %w", args[0], err)
		}
	}
	skerry := filepath.Join(tree, "bin", "skerry")
	began, version := time.Now(), ""
	err = c.upAndDown(ctx, skerry, "experiments/kubernetes.yaml", func(name string) error {
		config := filepath.Join(tree, "c1.kubeconfig")
		if err := c.command(ctx, skerry, "kubeconfig", name, "c1", "--out", config).Run(); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
		version, err = c.serverVersion(ctx, skerry, config)
		return err
	})
	if err != nil {
		return err
	}
	b.print(line{
		what:  "another minor of Kubernetes by one line of kube/kube.go, its program built and a lab up",
		seen:  fmt.Sprintf("the API server says %s, %s later", version, time.Since(began).Round(time.Second)),
		bound: otherMinor, pass: version == otherMinor, command: bundleCommand,
	})
	return nil
}
