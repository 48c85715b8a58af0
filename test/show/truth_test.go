package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/test/quiet"
)

var agent string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { agent = filepath.Join(dir, "skerry-agent") }))
}

// TestTruth is the truth gate in short: what independent tools see of a link
// agrees with what was asked for and with the lab's own samples, as ratios.
func TestTruth(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a lab is taken up")
	}
	b := &bench{out: io.Discard, agent: agent}
	t.Run("response times", func(t *testing.T) { b.inLab(t, "cubic", agree) })
	t.Run("rate", func(t *testing.T) { b.inLab(t, "cubic", rateAgrees) })
	t.Run("loss", func(t *testing.T) { b.inLab(t, "cubic", lossAgrees) })
}

// inLab holds that nothing is wrong of what f looks at in a lab. What a hypervisor takes of
// the cores meanwhile is wrong too, so it looks again on a machine that is its own.
func (b *bench) inLab(t *testing.T, congestion string, f func(context.Context, *session) ([]string, error)) {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		before, err := quiet.Now()
		if err != nil {
			t.Fatal(err)
		}
		var wrong []string
		if err := b.with(t.Context(), congestion, func(ctx context.Context, s *session) (err error) {
			wrong, err = f(ctx, s)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		after, err := quiet.Now()
		switch taken := after.Since(before); {
		case err != nil:
			t.Fatal(err)
		case len(wrong) == 0:
			return
		case taken < quiet.Taken:
			t.Fatal(strings.Join(wrong, "\n"))
		case try == tries:
			t.Skipf("needs cores of its own: a hypervisor took %.0f %% of them: %s", 100*taken, strings.Join(wrong, "; "))
		}
		if _, err := quiet.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func agree(ctx context.Context, s *session) (wrong []string, err error) {
	const rtt, tolerance = 20 * time.Millisecond, 0.05
	server, err := s.serve(ctx, servicePort, s.agent, "serve", "hello-world", "--listen", "0.0.0.0:"+servicePort)
	if err != nil {
		return nil, err
	}
	v, err := s.inTurns(ctx, gate{rtt: rtt, rounds: 1, links: s.packets})
	if err != nil {
		return nil, err
	}
	median := func(values []float64) float64 { return measure.Sort(values).Median() }
	for _, pair := range []struct {
		name       string
		seen, want float64
	}{
		{"ping to what was asked for", median(v.ping), float64(rtt)},
		{"samples at the pace of ping to ping", median(v.paced), median(v.ping)},
		{"samples to curl on a kept connection", median(v.kept), median(v.curlKept)},
		{"samples to curl on new connections", median(v.fresh), median(v.curlFresh)},
		{"a new connection to two kept round trips", median(v.fresh), 2 * median(v.kept)},
	} {
		if math.Abs(pair.seen/pair.want-1) > tolerance {
			wrong = append(wrong, fmt.Sprintf("%s: %.3f ms to %.3f ms", pair.name, pair.seen/1e6, pair.want/1e6))
		}
	}
	_, err = server.Stop(0)
	return wrong, err
}

func rateAgrees(ctx context.Context, s *session) (wrong []string, err error) {
	const asked = 100e6
	does := delay(time.Millisecond)
	does.Rate = asked
	if err := s.both(ctx, does, impair.UnitPacket); err != nil {
		return nil, err
	}
	r, err := s.transfer(ctx, "-t", "4", "-O", "1")
	if share := r.End.Received.Bps / asked; share < 0.90 || share > 0.97 {
		wrong = append(wrong, fmt.Sprintf("iperf3 reads %.3f of the rate", share))
	}
	return wrong, err
}

func lossAgrees(ctx context.Context, s *session) (wrong []string, err error) {
	const n, each = 4000, 0.05
	lost, err := s.lostPings(ctx, n, each)
	if low, high := binomialBounds(n, 1-(1-each)*(1-each)); lost < low || lost > high {
		wrong = append(wrong, fmt.Sprintf("%d of %d pings lost, want %d to %d", lost, n, low, high))
	}
	return wrong, err
}
