package main

import (
	"strings"
	"testing"
	"time"
)

// said is what ginkgo says of twenty specs, of which the fourth fails.
const said = "Running Suite: Kubernetes e2e suite\n\nWill run 20 of 7579 specs\nRunning in parallel across 4 processes\nSSSS•••\n------------------------------\n" +
	"• [FAILED] [2.000 seconds]\n[sig-a] spec 3\n------------------------------\n••••••••SSS••••••••\n\nSummarizing 1 Failure\n"

// However ginkgo's words are cut, they come to the same, in lines of which there are
// not too many; the log has all of them.
func TestProgress(t *testing.T) {
	for size := 1; size <= len(said); size++ {
		var log, out strings.Builder
		now := time.Unix(0, 0)
		p := &progress{log: &log, w: &out, now: func() time.Time { return now }, began: now, shown: now}
		for rest := said; rest != ""; {
			n := min(size, len(rest))
			now = now.Add(time.Duration(n) * time.Second / 5)
			if written, err := p.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if p.total != 20 || p.done != 20 || p.failed != 1 {
			t.Fatalf("by %d: %d of %d specs, %d failed", size, p.done, p.total, p.failed)
		}
		if log.String() != said {
			t.Errorf("by %d: the log has %q", size, log.String())
		}
		if lines := strings.Count(out.String(), "\n"); lines > 5 || !strings.HasPrefix(out.String(), "conformance: ") {
			t.Errorf("by %d: %d lines:\n%s", size, lines, out.String())
		}
	}
	p := &progress{done: 10, total: 30, began: time.Unix(0, 0)}
	if got, want := p.left(time.Unix(60, 0)), ", about 2m0s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
