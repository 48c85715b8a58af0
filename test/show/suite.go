package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// What the tests of clusters are among those that make test runs: packages of their own, and
// tests of others by their names.
var clusterTests = []struct {
	name string
	args []string
}{
	{"kube, lab/cluster and test/conformance", []string{"./kube/...", "./lab/cluster/...", "./test/conformance"}},
	{"of lab/run", []string{"-run=OnKubernetes", "./lab/run"}},
	{"of lab/cli", []string{"-run=TestScripts/^(clusters|lacks|pods|refused)$", "./lab/cli"}},
}

// showSuite runs what clusters add to make test, and measures it: without the programs'
// compilation, which is warm.
func showSuite(ctx context.Context, b *bench) error {
	const most = 4 * time.Minute
	var took time.Duration
	var parts []string
	for _, tests := range clusterTests {
		out, err := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-p=1"}, tests.args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("go test %s: %w\n%s", strings.Join(tests.args, " "), err, lastPart(string(out)))
		}
		var of time.Duration
		for _, p := range packageTook.FindAllStringSubmatch(string(out), -1) {
			d, err := time.ParseDuration(p[1])
			if err != nil {
				return err
			}
			of += d
		}
		took += of
		parts = append(parts, fmt.Sprintf("%s %.0f s", tests.name, of.Seconds()))
	}
	fuzz := exec.CommandContext(ctx, "test/fuzz.sh", "./kube/...", "./lab/cluster/...")
	began := time.Now()
	if out, err := fuzz.CombinedOutput(); err != nil {
		return fmt.Errorf("fuzz: %w\n%s", err, lastPart(string(out)))
	}
	of := time.Since(began)
	took += of
	b.print(line{
		what: fmt.Sprintf("what clusters add to make test: %s, fuzzing %.0f s", strings.Join(parts, ", "), of.Seconds()),
		seen: fmt.Sprintf("%.0f s", took.Seconds()), bound: "<= " + most.String(), command: kubernetesCommand, pass: took <= most,
	})
	return nil
}

// showGuestCluster has a cluster live where control groups are of version 2: in a guest,
// with Debian's kernel and programs that come as a bundle.
func showGuestCluster(ctx context.Context, b *bench) error {
	const timeout = "45m" // of an emulated core
	began := time.Now()
	args := []string{"test", "-count=1", "-timeout=" + timeout, "-run=^TestCluster$", "-v", "./test/guest", "-cluster"}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err == nil && !strings.Contains(string(out), "\n--- PASS: TestCluster") {
		err = errors.New("it was not run")
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, lastPart(string(out)))
	}
	b.print(line{
		what: "two nodes with control groups version 2, in a guest: up from a bundle, a Deployment answers behind its Service, down",
		seen: fmt.Sprintf("so, in %.0f s", time.Since(began).Seconds()), bound: "so", command: kubernetesCommand, pass: true,
	})
	return nil
}

// packageTook is go test's line of a package that passed.
var packageTook = regexp.MustCompile(`(?m)^ok\s+\S+\s+([0-9.]+s)`)
