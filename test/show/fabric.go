package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/systems"
)

const fabricCommand = "make show AREA=fabric"

// showFabric is all that the fabric has to show, a part after the other.
func showFabric(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context, *bench) error{showFabricNear, showFabricLimits, showFabricLoad, showFabricExtra, showFabricFaults, showFabricGuards} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// showFabricLimits holds what the fabric costs against the physical limit, and against TCP
// of the client's own.
func showFabricLimits(ctx context.Context, b *bench) error {
	return b.experiments(ctx, "experiments/fabric-limits.yaml", "experiments/fabric-tail.yaml", "experiments/fabric-idle.yaml")
}

// showFabricNear holds what gateways cost where no link hides it, against two bare relays of
// TLS.
func showFabricNear(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-fabric-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var files []string
	for name, text := range map[string]string{"near.yaml": nearFile, "new.yaml": newFile, "rush.yaml": rushFile} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		files = append(files, file)
	}
	return b.experiments(ctx, files...)
}

// showFabricLoad holds what many connections and much traffic do to others.
func showFabricLoad(ctx context.Context, b *bench) error {
	for _, measure := range []func(context.Context) error{b.idleConnections, b.besideBulk, b.neighbourly} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// experiments runs some, with the relays among their systems.
func (b *bench) experiments(ctx context.Context, files ...string) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-fabric-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plugins := filepath.Join(dir, "systems")
	if err := withRelays(plugins); err != nil {
		return err
	}
	for _, file := range files {
		if err := b.claims(ctx, file, plugins, filepath.Join(dir, filepath.Base(file)+".run")); err != nil {
			return err
		}
	}
	return nil
}

// floorClaim is of what no gateways can be below: it is no line, but shown in the next.
const floorClaim = "floor"

// claims runs an experiment, and prints a line for each of its claims and objectives.
func (b *bench) claims(ctx context.Context, file, plugins, out string) error {
	input, err := b.runs(ctx, file, out, "--systems", plugins)
	if err == nil {
		b.judged(input, fabricCommand)
	}
	return err
}

// runs runs an experiment into a folder.
func (b *bench) runs(ctx context.Context, file, out string, flags ...string) (report.Input, error) {
	bin := filepath.Dir(b.agent)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "skerry"), append([]string{"run", file, "--out", out}, flags...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it takes its lab down
	said, failed := cmd.CombinedOutput()                                  // it fails where a claim does
	input, err := run.Collect(out)
	if err != nil {
		return input, fmt.Errorf("%s: %w: %s", file, errors.Join(failed, err), lastPart(string(said)))
	}
	return input, nil
}

// judged prints a line for each claim and objective of a run. Skerry's own claims have to
// hold; those of a paper have to be decided, one way or the other.
func (b *bench) judged(input report.Input, command string) {
	floor := ""
	for _, j := range input.Claims {
		if j.Name == floorClaim {
			floor = j.Effect + " " + j.Statement
			continue
		}
		l := line{
			what: fmt.Sprintf("%s, %s", input.Experiment.Name, j.Name), seen: j.Effect + " " + string(j.Result) + " (" + j.Why + ")", bound: j.Statement,
			floor: floor, pass: j.Result == claim.Holds, command: command,
		}
		if j.Paper != "" {
			l.bound += ", or not, but decided"
			l.pass = l.pass || j.Result == claim.Fails
		}
		b.print(l)
		floor = ""
	}
	for _, v := range input.Verdicts {
		b.print(line{
			what: input.Experiment.Name, seen: v.Seen, bound: fmt.Sprintf("%s < %s", v.Objective.Metric, v.Objective.Below),
			pass: v.Met, command: command,
		})
	}
}

// relaysPlugin is a system of two relays of TLS that do nothing else: the floor of any
// design whose gateways speak TLS. The second has each connection between them open before
// it is needed: the floor of one that has them warm.
const relaysPlugin = `name: %[2]s
kind: interconnect
summary: two bare relays of TLS, with %[3]d connections between them open ahead of need
carries: [http/1.1, tcp]
hosts:
  route: [client, importer, exporter, service]
  start:
    - {at: exporter, run: "exec %[1]s relay-tls from {{.Exporter.IP}}:7443 {{.Service.IP}}:{{.Service.Port}}", daemon: relay-exporter}
    - {at: importer, run: "exec %[1]s relay-tls to {{.Importer.IP}}:7080 {{.Exporter.IP}}:7443 %[3]d", daemon: relay-importer}
  ready:
    - {at: importer, tcp: "{{.Exporter.IP}}:7443"}
    - {at: client, tcp: "{{.Importer.IP}}:7080"}
  address: "{{.Importer.IP}}:7080"
`

// withRelays makes a folder with the systems that there are, and the relays.
func withRelays(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, systems.FS); err != nil {
		return err
	}
	for name, ahead := range map[string]int{"tls-relays": 0, "warm-relays": 14_000} { // newFile's, and some
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, "system.yaml"), fmt.Appendf(nil, relaysPlugin, self, name, ahead), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// nearFile is of clusters next to each other, where nothing hides what gateways cost.
const nearFile = `name: fabric-near
topology:
  clusters: [{name: c1, nodes: [node]}, {name: c2, nodes: [node]}]
  service: c1/node
  client: c2/node
scenarios: [{name: lcl}]
systems: [direct, tls-relays, native]
workloads: [{name: payload-echo, size: 60B}]
load: {threads: [1, 8], iterations: 2000, warmup: 100, connection: kept}
repetitions: 32
claims:
  - {name: floor, kind: bound, of: {system: tls-relays}, minus: {system: direct}, above: 1us, where: {threads: 1}}
  - {name: adds-little, kind: bound, of: {system: native}, minus: {system: direct}, below: 80us, where: {threads: 1}}
  - {name: like-bare-relays, kind: ratio, of: {system: native}, to: {system: tls-relays}, below: 1.3, where: {threads: 1}}
  - {name: throughput-of-bare-relays, kind: ratio, metric: rate, of: {system: native}, to: {system: tls-relays}, above: 0.6, where: {threads: 8}}
`

// newFile is of users who call as fast as they can, each time on a new connection, of a
// service that does no more than take it and echo.
const newFile = `name: fabric-new
topology:
  clusters: [{name: c1, nodes: [node]}, {name: c2, nodes: [node]}]
  service: c1/node
  client: c2/node
scenarios: [{name: lcl}]
systems: [native, warm-relays]
workloads: [{name: payload-echo, size: 60B}]
load: {protocol: tcp, threads: 64, iterations: 200, warmup: 10, connection: new}
repetitions: 12
claims:
  - {name: floor, kind: bound, metric: rate, of: {system: warm-relays}, above: 1/s}
  - {name: connections-a-second, kind: bound, metric: rate, of: {system: native}, above: 3000/s}
  - {name: share-of-bare-relays, kind: ratio, metric: rate, of: {system: native}, to: {system: warm-relays}, above: 0.8}
`

// rushFile is of 200 users who call at once, each on a new connection.
const rushFile = `name: fabric-rush
topology:
  clusters: [{name: c1, nodes: [node]}, {name: c2, nodes: [node]}]
  service: c1/node
  client: c2/node
scenarios: [{name: rtt20, links: [{between: [c1, c2], delay: 10ms, rate: 1gbit}]}]
systems: [native]
workloads: [{name: payload-echo, size: 60B}]
load: {threads: 200, iterations: 1, connection: new}
repetitions: 5
objectives:
  - {metric: errors, below: 0.1%}
  - {metric: max, below: 160ms}
`
