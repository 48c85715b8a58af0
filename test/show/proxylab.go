package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
)

// costSystem is the system whose policy has to be the best.
const costSystem = "skerry-proxy:cost"

// proxyExperiments are RAP's figures and the cases that its paper lacks; proxyAsides ask more
// of some of those cases, of fewer systems; proxyFaults are of a node, a proxy and a control
// plane that go.
var (
	proxyExperiments = []string{"rap-f5", "rap-f6", "rap-f7", "rap-f8", "rap-f8-few", "rap-burst", "rap-broken", "rap-slow-node", "rap-open-loop"}
	proxyAsides      = []string{"rap-f6-near", "rap-f7-one", "rap-f8-pair", "rap-burst-pair", "rap-metrics", "rap-metrics-pair"}
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
// loops, by the last run of each; of an open one all serve what comes.
func showProxyMost(_ context.Context, b *bench) error {
	best, cases := 0, 0
	var of []string // which runs
	for _, name := range proxyExperiments {
		input, err := lastRun(name)
		if err != nil {
			return err
		}
		of = append(of, name+" of "+input.Provenance.Commit)
		for _, c := range served(input.Results) {
			if cases++; c.best == costSystem {
				best++
			}
		}
	}
	b.print(line{
		what: fmt.Sprintf("cases of which %s answers the most requests, in the last runs of %s", costSystem, strings.Join(of, ", ")),
		seen: fmt.Sprintf("%d of %d", best, cases), bound: "more than half", command: "make show AREA=proxy-most", pass: 2*best > cases,
	})
	return nil
}

// lastRun is the last run of an experiment that is kept. It has to have ended.
func lastRun(name string) (report.Input, error) {
	kept, err := filepath.Glob(keptRun(name, "[0-9]*")) // sorted
	if err != nil || len(kept) == 0 {
		return report.Input{}, errors.Join(err, fmt.Errorf("runs has none of %s: 'go run ./test/show %s' makes one", name, name))
	}
	dir := kept[len(kept)-1]
	input, err := run.Collect(dir)
	if err == nil && input.Provenance.Took == 0 {
		err = fmt.Errorf("%s has not ended: 'bin/skerry run --resume %s' goes on with it", dir, dir)
	}
	return input, err
}

// contested is a case that cost and others were in, and who answered the most.
type contested struct{ name, best string }

// served are the cases of a closed loop that cost and others were in: all else is the same.
func served(results []report.Result) (cases []contested) {
	answered := map[string]map[string]int{} // by case and system
	var order []string
	for _, r := range results {
		if r.Cell.Rate != 0 || r.Rejected != "" || r.Lacks != "" {
			continue
		}
		name := r.Cell.Scenario.Name + " " + r.Cell.Ratio
		if answered[name] == nil {
			answered[name] = map[string]int{}
			order = append(order, name)
		}
		answered[name][r.Cell.System] = r.Summary.Requests - r.Summary.Errors
	}
	for _, name := range order {
		systems := answered[name]
		if _, has := systems[costSystem]; !has || len(systems) < 2 {
			continue
		}
		best := costSystem
		for system, n := range systems {
			if n > systems[best] {
				best = system
			}
		}
		cases = append(cases, contested{name, best})
	}
	return cases
}
