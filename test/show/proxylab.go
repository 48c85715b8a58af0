package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/report/markdown"
	"skerry.dev/skerry/lab/run"
)

// costSystem is the system whose policy has to be the best.
const costSystem = "skerry-proxy:cost"

// proxyExperiments are those of RAP's figures, and of the cases that its paper lacks, of which
// it is counted who answers the most; proxyAsides ask other things, or more of some of those
// cases of fewer systems; proxyFaults are of a node, a proxy and a control plane that go.
var (
	proxyExperiments = []string{"rap-f6", "rap-f7", "rap-f8", "rap-f8-few", "rap-burst", "rap-broken", "rap-slow-node"}
	proxyAsides      = []string{"rap-f5", "rap-f6-near", "rap-f7-one", "rap-f7-many", "rap-f8-pair", "rap-burst-pair", "rap-open-loop", "rap-metrics", "rap-metrics-pair", "rap-metrics-fresh"}
	proxyFaults      = []string{"kubernetes-proxy-faults", "kubernetes-proxy-plane-gone"}
)

// proxyAlone are all of these: each can be shown alone.
func proxyAlone() []string { return slices.Concat(proxyExperiments, proxyAsides, proxyFaults) }

// showProxy shows all of the proxy: some ten hours, of which its experiments take most.
func showProxy(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context, *bench) error{showProxySim, showProxyPlane, showProxyScale, showProxyLab, showProxyFaults} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// showProxyLab runs the proxy's experiments, and counts who was the best.
func showProxyLab(ctx context.Context, b *bench) error {
	if err := b.contests(ctx, "proxy-lab", slices.Concat(proxyExperiments, proxyAsides)...); err != nil {
		return err
	}
	return showProxyMost(ctx, b)
}

// showProxyFaults shows what clients see of what goes away.
func showProxyFaults(ctx context.Context, b *bench) error {
	return b.contests(ctx, "proxy-faults", proxyFaults...)
}

// contests runs experiments one after the other and prints what is judged of each. The runs
// are kept.
func (b *bench) contests(ctx context.Context, area string, names ...string) error {
	for _, name := range names {
		dir := keptRun(name, time.Now().UTC().Format("20060102-150405"))
		input, err := b.runs(ctx, filepath.Join("experiments", name+".yaml"), dir)
		if err != nil {
			return err
		}
		b.judged(input, "make show AREA="+area)
		_, _ = fmt.Fprintln(b.out, "      "+filepath.Join(dir, "report.html"))
	}
	return nil
}

// keptRun is where a run of an experiment is, by when it began.
func keptRun(name, when string) string { return filepath.Join("runs", "show-"+name+"-"+when) }

// showProxyMost holds cost to be the best system in most cases of all experiments' closed
// loops, by the last run of each that is kept, and where none is by that which is published;
// of an open one all serve what comes.
func showProxyMost(_ context.Context, b *bench) error {
	best, cases := 0, 0
	var of []string // which runs
	for _, name := range proxyExperiments {
		rates, run, err := lastRates(name)
		if err != nil {
			return err
		}
		of = append(of, run)
		more, counted := rates.Best(costSystem)
		best, cases = best+more, cases+counted
	}
	b.print(line{
		what: fmt.Sprintf("cases of which %s answers the most requests, in the last runs of %s", costSystem, strings.Join(of, ", ")),
		seen: fmt.Sprintf("%d of %d", best, cases), bound: "more than half", command: "make show AREA=proxy-most", pass: 2*best > cases,
	})
	return nil
}

// published is the page that has tables of runs.
const published = "docs/reproduction.md"

// lastRates are what systems have answered in the last run of an experiment, and its name: of
// all of them no machine may have the hours at once. A run that is kept has to have ended.
func lastRates(name string) (rates markdown.Rates, which string, err error) {
	kept, err := filepath.Glob(keptRun(name, "[0-9]*")) // sorted
	if err != nil {
		return markdown.Rates{}, "", err
	}
	if len(kept) == 0 {
		return publishedRates(name)
	}
	dir := kept[len(kept)-1]
	input, err := run.Collect(dir)
	if err == nil && input.Provenance.Took == 0 {
		err = fmt.Errorf("%s has not ended: 'bin/skerry run --resume %s' goes on with it", dir, dir)
	}
	return markdown.RatesOf(input.Results), name + " of " + input.Provenance.Commit, err
}

// publishedRates are those that test/tables has written.
func publishedRates(name string) (markdown.Rates, string, error) {
	text, err := os.ReadFile(published)
	if err != nil {
		return markdown.Rates{}, "", err
	}
	table, err := markdown.Table(string(text), name)
	if err != nil {
		return markdown.Rates{}, "", fmt.Errorf("%s: %w", published, err)
	}
	rates, err := markdown.RatesIn(table)
	if err != nil {
		return markdown.Rates{}, "", fmt.Errorf("%s: %s: %w", published, name, err)
	}
	_, commit, _ := strings.Cut(table, ", commit ")
	commit, _, _ = strings.Cut(commit, ",")
	return rates, name + " of " + commit + " (" + published + ")", nil
}
