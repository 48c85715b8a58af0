package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// Nodes of the lab's one cluster; the suite runs at the first.
const (
	site = "c1"
	head = topology.Ref(site + "/head")
)

func twoNodes() topology.Topology {
	return topology.Topology{Clusters: []topology.Cluster{{Name: site, Nodes: []string{"head", "worker"}}}}
}

const (
	// procs is how many specs run at a time.
	procs = 4
	// suiteMost bounds the whole run.
	suiteMost = "2h"
	logFile   = "ginkgo.log"
)

// subject is a cluster that is up, and what it is looked at by.
type subject struct {
	lab       *host.Lab
	cluster   *cluster.Cluster
	ofCluster map[string]string
	ofSuite   map[string]string
	// dir takes the report and the log.
	dir string
}

// run runs the specs of a list and reads what became of them.
func (s subject) run(ctx context.Context, l list) ([]ran, error) {
	kubectl := filepath.Join(s.dir, "kubectl")
	if err := os.Symlink(s.ofCluster[kube.Kubernetes], kubectl); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, logFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	now := time.Now()
	said := &progress{log: log, w: os.Stderr, now: time.Now, began: now, shown: now}
	runErr := s.lab.Run(ctx, host.Command{
		Node: head, Name: "ginkgo", Args: s.commandLine(l, kubectl), Dir: s.dir, Stdout: said, Stderr: said,
		// The user's own settings of kubectl stay out, and so does their way to the internet.
		Env: []string{"HOME=" + s.dir, "NO_PROXY=*", "no_proxy=*"},
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	written, err := os.Open(filepath.Join(s.dir, "ginkgo", "report.json"))
	if errors.Is(err, fs.ErrNotExist) { // a spec that fails makes an error, too
		return nil, fmt.Errorf("the suite ended without a report (%w): %s", runErr, complaint.InFile(log.Name(), complaint.Last))
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = written.Close() }()
	return readReport(written, l)
}

func (s subject) commandLine(l list, kubectl string) []string {
	args := []string{s.ofSuite[ginkgo], fmt.Sprintf("--procs=%d", procs), "--no-color", "--timeout=" + suiteMost}
	args = append(args, l.flags()...)
	return append(args, s.ofSuite[suite], "--",
		"--kubeconfig="+s.cluster.AdminKubeconfig(), "--kubectl-path="+kubectl,
		"--provider=skeleton", fmt.Sprintf("--num-nodes=%d", len(s.lab.Topology.Nodes())),
		"--allowed-not-ready-nodes=0", "--minStartupPods=0", "--disable-log-dump", "--e2e-output-dir="+s.dir,
		"--report-dir="+s.dir, "--report-complete-ginkgo")
}

// progress keeps what ginkgo says in a log, and shows by it how far the suite is:
// ginkgo tells first how many specs it will run, then writes a dot as each ends.
type progress struct {
	log, w io.Writer
	now    func() time.Time
	began  time.Time

	// rest is what was said that cannot be understood yet.
	rest                []byte
	done, failed, total int
	shown               time.Time
}

const (
	// progressPause lies between two lines.
	progressPause = 15 * time.Second
	dot           = "•"
	dotOfFailure  = dot + " [FAILED]"
)

var willRun = regexp.MustCompile(`Will run (\d+) of \d+ specs`)

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	if m := willRun.FindSubmatchIndex(p.rest); p.total == 0 && m != nil {
		p.total, _ = strconv.Atoi(string(p.rest[m[2]:m[3]])) // digits
		p.rest = p.rest[m[1]:]
	}
	for p.total > 0 {
		i := bytes.Index(p.rest, []byte(dot))
		if i < 0 {
			p.rest = p.rest[max(0, len(p.rest)-len(dot)):]
			break
		}
		if p.rest = p.rest[i:]; len(p.rest) < len(dotOfFailure) {
			break // what kind it is has yet to be said
		}
		p.done++
		if bytes.HasPrefix(p.rest, []byte(dotOfFailure)) {
			p.failed++
		}
		p.rest = p.rest[len(dot):]
	}
	if now := p.now(); p.total > 0 && now.Sub(p.shown) >= progressPause {
		p.shown = now
		_, _ = fmt.Fprintf(p.w, "conformance: %d of %d specs, %d failed%s\n", p.done, p.total, p.failed, p.left(now))
	}
	return p.log.Write(b)
}

// left is ", about 3m left" by what has been done; nothing where that says little.
func (p *progress) left(now time.Time) string {
	const telling = 8 // specs
	if p.done < telling || p.done >= p.total {
		return ""
	}
	left := now.Sub(p.began) * time.Duration(p.total-p.done) / time.Duration(p.done)
	return ", about " + left.Round(time.Second).String() + " left"
}
