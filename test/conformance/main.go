// Command conformance runs Kubernetes' own conformance suite on a cluster of a lab
// of two nodes with kube-proxy by nftables. It builds the suite and the programs of
// its images from pinned modules, makes the images of them and of Debian packages,
// takes the lab up, runs the specs in the first node, takes the lab down, and
// compares what came of them with expected.txt. By default it runs all of
// sig-network, with -full every area. It exits 1 on a regression: a spec that passed
// before and does not now, or is gone. Start at conform.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
)

// expectedFile is beside this one; from the root of the repository, where
// the command is run, it lies in folder.
const (
	folder       = "test/conformance"
	expectedFile = "expected.txt"
)

var errRegression = errors.New("the cluster does less than expected.txt says")

// choice is what the command line asks for.
type choice struct {
	list list
	// update writes expected.txt anew.
	update bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, err := choose(os.Args[1:])
	if err == nil {
		err = conform(ctx, c, os.Stdout)
	}
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		say("error: %v", err)
		os.Exit(1)
	}
}

// errUsage is of a command line that was told to be wrong.
var errUsage = errors.New("usage")

// choose reads the command line.
func choose(args []string) (choice, error) {
	var c choice
	var full bool
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.BoolVar(&full, "full", false, "run the specs of every area, not of sig-network alone")
	f.BoolVar(&c.update, "update", false, "write what is seen to "+expectedFile+", with the reasons that it has")
	f.Func("focus", "run only the specs whose names match this `regexp`", func(text string) (err error) {
		c.list.focus, err = regexp.Compile(text)
		return err
	})
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return choice{}, err
	} else if err != nil {
		return choice{}, errUsage
	}
	if f.NArg() > 0 {
		say("error: it takes flags alone, not %q: -h tells which", f.Arg(0))
		return choice{}, errUsage
	}
	base := narrow
	if full {
		base = wider
	}
	base.focus = c.list.focus
	c.list = base
	return c, nil
}

// conform runs the specs and judges them.
func conform(ctx context.Context, c choice, out io.Writer) (err error) {
	file := filepath.Join(folder, expectedFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: run this from the root of the repository", err)
	}
	expected, err := parseExpected(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	dir, err := os.MkdirTemp("", "skerry-conformance-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			say("what it left is in %s", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	all, err := measure(ctx, c.list, dir)
	if err != nil {
		return err
	}
	if err := printTable(out, all); err != nil {
		return err
	}
	if c.update {
		_, version, _ := kube.Catalogue().Version(kube.Kubernetes)
		return os.WriteFile(file, []byte(expectedText(version, update(expected, results(all), c.list.covers))), 0o644)
	}
	return judge(out, compare(expected, results(all), c.list.covers))
}

// judge tells what differs, and whether anything is worse.
func judge(out io.Writer, differences []difference) (err error) {
	for _, d := range differences {
		mark := "other"
		if d.worse {
			mark, err = "WORSE", errRegression
		}
		line := fmt.Sprintf("%s  %s %s", mark, d.name, d.how)
		if d.verdict != pass && d.reason != "" {
			line += ": " + string(d.verdict) + ", " + d.reason
		}
		_, _ = fmt.Fprintln(out, line)
	}
	return err
}

// measure takes the lab up, runs the specs, and takes the lab down.
func measure(ctx context.Context, l list, dir string) (all []ran, err error) {
	ofCluster, ofSuite, err := programs(ctx)
	if err != nil {
		return nil, err
	}
	inImages := map[string]string{layerEtcd: ofCluster["etcd"]}
	for _, name := range []string{agnhost, nonewprivs, sampleAPI} {
		inImages[name] = ofSuite[name]
	}
	images, err := archive(ctx, inImages)
	if err != nil {
		return nil, err
	}
	agent, err := filepath.Abs("bin/skerry-agent")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	lab, err := host.Up(ctx, twoNodes(), host.Options{Name: fmt.Sprintf("conformance-%d", os.Getpid()), Agent: agent, Backend: "auto", Bound: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	keep := []string{dir, filepath.Dir(images), filepath.Dir(ofSuite[ginkgo]), filepath.Dir(ofSuite[suite])}
	clusters, err := cluster.Up(ctx, lab, cluster.Options{Programs: ofCluster, Agent: agent, Keep: keep, Now: began})
	if err == nil {
		err = clusters[0].LoadImages(ctx, images)
	}
	if err != nil {
		return nil, err
	}
	say("a cluster of two nodes is up, with the images of the suite, after %s", time.Since(began).Round(time.Second))
	all, err = subject{lab, clusters[0], ofCluster, ofSuite, dir}.run(ctx, l)
	if err == nil {
		say("%d specs in %s", len(all), time.Since(began).Round(time.Second))
		err = clusters[0].Ended()
	}
	return all, err
}
