package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// hostility is what tests do to a gateway or an authority, and what has to come of it.
type hostility struct{ what, bound, folder, tests, flag, often string }

// hostilities are what the fabric has to stand.
func hostilities() []hostility {
	const refused = "refused, with its counter and a line in the log without secrets"
	return []hostility{
		{
			what:   "attacks on a gateway: no certificate, another authority, expired, an older TLS, no TLS, a hello byte by byte, an open frame again, a frame too long, the cluster of another, attributes of a service; then 200 times again",
			bound:  "each " + refused + ", memory flat within 4 MiB",
			folder: "./fabric/gateway", tests: "^TestHostileCallers$", flag: "-attacks", often: "200",
		},
		{
			what: "10,000 connections to a gateway that say nothing", bound: "bounded, who may call is answered, memory flat within 16 MiB",
			folder: "./fabric/gateway", tests: "^TestHalfOpen$", flag: "-half-open", often: "10000",
		},
		{
			what: "attacks on an authority: a token used by many at once, at another authority, expired; requests that are none, too long, or without a certificate", bound: "each " + refused,
			folder: "./fabric/authority", tests: "^(TestTokenOnce|TestAnotherAuthority|TestHostileCallers)$",
		},
	}
}

// showFabricGuards holds what a decision takes among many policies, and what hostile callers
// come to.
func showFabricGuards(ctx context.Context, b *bench) error {
	if err := b.decides(ctx); err != nil {
		return err
	}
	for _, h := range hostilities() {
		b.refuses(ctx, h)
	}
	return nil
}

var decision = regexp.MustCompile(`([0-9.]+) p99-ns`)

// decides reads what the benchmark of decisions says.
func (b *bench) decides(ctx context.Context) error {
	const most = 5000
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkDecide$", "-benchtime", "2s", "./fabric/policy").CombinedOutput()
	found := decision.FindSubmatch(out)
	if err != nil || found == nil {
		return fmt.Errorf("decide among many policies: %w: %s", err, lastPart(string(out)))
	}
	p99, err := strconv.ParseFloat(string(found[1]), 64)
	b.print(line{
		what: "a decision among 10,000 policies: p99", seen: fmt.Sprintf("%.2f us", p99/1e3), bound: fmt.Sprintf("<= %d us", most/1000),
		pass: p99 <= most, command: fabricCommand,
	})
	return err
}

// refuses runs tests that attack, and prints a line of how they end.
func (b *bench) refuses(ctx context.Context, h hostility) {
	args := []string{"test", "-count=1", "-v", "-run", h.tests, h.folder}
	if h.flag != "" {
		args = append(args, h.flag, h.often)
	}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	seen := fmt.Sprintf("%d tests pass", strings.Count(string(out), "--- PASS"))
	if err != nil {
		seen = strings.ReplaceAll(lastPart(string(out)), "\n", " ")
	}
	b.print(line{what: h.what, seen: seen, bound: h.bound, pass: err == nil, command: fabricCommand})
}
