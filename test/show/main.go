// Command show runs the acceptance measurements of an area and prints one line
// for each: PASS or FAIL, what was measured, the figure with its interval, the
// bound, the floor beside it where there is one, and the command. It exits 1 when a
// line fails. Start at areas.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"skerry.dev/skerry/internal/guest"
)

// areas are what can be shown.
var areas = map[string]func(context.Context, *bench) error{
	"links":      showLinks,
	"trace":      showTrace,
	"truth":      showTruth,
	"lab":        showLab,
	"alike":      showAlike,
	"planted":    showPlanted,
	"report":     showReport,
	"load":       showLoad,
	"proof":      showProof,
	"adapters":   showAdapters,
	"netem":      showNetem,
	"ten":        showTen,
	"kubernetes": showKubernetes,
	"bundle":     showBundle,
	"fabric":     showFabric,
	"proxy":      showProxy,
	"overlay":    showOverlay,
}

// parts of them, to be shown alone.
var parts = map[string]func(context.Context, *bench) error{
	"pods":             showPods,
	"kubernetes-suite": showSuite,
	"kubernetes-guest": showGuestCluster,
	"fabric-near":      showFabricNear,
	"fabric-limits":    showFabricLimits,
	"fabric-load":      showFabricLoad,
	"fabric-neighbour": func(ctx context.Context, b *bench) error { return b.neighbourly(ctx) },
	"fabric-extra":     showFabricExtra,
	"fabric-faults":    showFabricFaults,
	"fabric-guards":    showFabricGuards,
	"proxy-sim":        showProxySim,
	"proxy-plane":      showProxyPlane,
	"proxy-scale":      showProxyScale,
	"proxy-lab":        showProxyLab,
	"proxy-most":       showProxyMost,
	"proxy-faults":     showProxyFaults,
	"overlay-latency":  showOverlayLatency,
	"overlay-windows":  showOverlayWindows,
	"overlay-bench":    showOverlayBench,
	"overlay-kills":    showOverlayKills,
	"overlay-guest":    showOverlayGuest,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "show: error: %v\n", err)
		os.Exit(1)
	}
}

// roles are what this program is as a system under test of an area, or as a part of one.
var roles = map[string]func(context.Context, []string) error{
	"relay":     serving(relayOf),
	"relay-tls": serving(relayTLSOf),
	"sink":      sink,
	"carry":     carry,
	apartRole:   serveApart,
}

// serving is the role of what a command line describes.
func serving[R interface{ serve(context.Context) error }](of func([]string) (R, error)) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		r, err := of(args)
		if err != nil {
			return err
		}
		return r.serve(ctx)
	}
}

// serve shows areas, or has a role, or is a guest's program.
func serve(ctx context.Context, args []string) error {
	if guest.Inside() {
		serveGuest(ctx)
	}
	if len(args) > 0 {
		if role, ok := roles[args[0]]; ok {
			return role(ctx, args[1:])
		}
	}
	return show(ctx, args)
}

func show(ctx context.Context, names []string) error {
	if len(names) == 1 && (names[0] == "-h" || names[0] == "--help") {
		_, err := fmt.Fprintln(os.Stdout, "show [AREA...]: runs what an area, or a part of one, is claimed to do, all areas where none is named\n"+known())
		return err
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(areas))
	}
	for _, name := range names {
		if _, ok := partOf(name); !ok {
			return fmt.Errorf("no area %q: 'go run ./test/show --help' lists them", name)
		}
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	b := &bench{out: os.Stdout, agent: filepath.Join(bin, "skerry-agent")}
	for _, name := range names {
		area, _ := partOf(name)
		if err := area(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if b.failed > 0 {
		return fmt.Errorf("%d of %d lines: %w", b.failed, b.lines, errFailed)
	}
	return nil
}

// known lists what can be shown.
func known() string {
	return fmt.Sprintf("areas: %s\nparts of them: %s\nexperiments of proxy: %s", strings.Join(slices.Sorted(maps.Keys(areas)), ", "),
		strings.Join(slices.Sorted(maps.Keys(parts)), ", "), strings.Join(proxyAlone(), ", "))
}

// partOf is what a name shows: an area, a part of one, or one of the proxy's experiments.
func partOf(name string) (part func(context.Context, *bench) error, ok bool) {
	if slices.Contains(proxyAlone(), name) {
		return func(ctx context.Context, b *bench) error { return b.contests(ctx, name, name) }, true
	}
	if part, ok = areas[name]; !ok {
		part, ok = parts[name]
	}
	return part, ok
}

var errFailed = errors.New("FAIL")

// passMark and failMark begin a line.
const passMark, failMark = "PASS  ", "FAIL  "

// line is one acceptance measurement.
type line struct {
	what, seen, bound, floor, command string
	pass                              bool
}

func (b *bench) print(l line) {
	b.lines++
	verdict := passMark
	if !l.pass {
		verdict = failMark
		b.failed++
	}
	text := fmt.Sprintf("%s%s: %s, bound %s", verdict, l.what, l.seen, l.bound)
	if l.floor != "" {
		text += ", floor " + l.floor
	}
	_, _ = fmt.Fprintf(b.out, "%s  [%s]\n", text, l.command)
}
