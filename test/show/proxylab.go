package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"skerry.dev/skerry/lab/report"
)

const (
	proxyLabCommand    = "make show AREA=proxy-lab"
	proxyFaultsCommand = "make show AREA=proxy-faults"
	// costSystem is the system whose policy has to be the best.
	costSystem = "skerry-proxy:cost"
)

// showProxy shows all of the proxy: some three hours, of which its experiments take most.
func showProxy(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context, *bench) error{showProxySim, showProxyPlane, showProxyScale, showProxyLab, showProxyFaults} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// showProxyLab runs RAP's figures, and the cases that its paper lacks, and has cost be the
// best system of most cases of a closed loop. Of an open one all serve what comes.
func showProxyLab(ctx context.Context, b *bench) error {
	best, cases := 0, 0
	err := b.alone(ctx, proxyLabCommand, func(input report.Input) {
		for _, c := range served(input.Results) {
			if cases++; c.best == costSystem {
				best++
			}
		}
	}, "rap-f5", "rap-f6", "rap-f7", "rap-f8", "rap-burst", "rap-broken", "rap-slow-node", "rap-open-loop")
	if err != nil {
		return err
	}
	b.print(line{
		what: fmt.Sprintf("cases of the proxy's experiments, of which %s answers the most requests", costSystem),
		seen: fmt.Sprintf("%d of %d", best, cases), bound: "more than half", command: proxyLabCommand, pass: 2*best > cases,
	})
	return nil
}

// showProxyFaults shows what clients see of a node, a proxy and a control plane that go.
func showProxyFaults(ctx context.Context, b *bench) error {
	return b.alone(ctx, proxyFaultsCommand, func(report.Input) {}, "kubernetes-proxy-faults", "kubernetes-proxy-plane-gone")
}

// alone runs experiments one after the other, prints what is judged of each, and looks at it.
func (b *bench) alone(ctx context.Context, command string, look func(report.Input), names ...string) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-proxy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range names {
		input, err := b.runs(ctx, filepath.Join("experiments", name+".yaml"), filepath.Join(dir, name))
		if err != nil {
			return err
		}
		b.judged(input, command)
		look(input)
	}
	return nil
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
