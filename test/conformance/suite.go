package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
	listener, err := s.listen()
	if err != nil {
		return nil, err
	}
	p := &progress{w: os.Stderr, now: time.Now, began: time.Now()}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	runErr := s.lab.Run(ctx, host.Command{
		Node: head, Name: "ginkgo", Args: s.commandLine(l, kubectl, listener.Addr().String()), Dir: s.dir, Stdout: log, Stderr: log,
		// The user's own settings of kubectl stay out, and so does their way to the internet.
		Env: []string{"HOME=" + s.dir, "NO_PROXY=*", "no_proxy=*"},
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	written, err := os.Open(filepath.Join(s.dir, "ginkgo", "report.json"))
	if errors.Is(err, fs.ErrNotExist) { // a spec that fails makes an error, too
		return nil, fmt.Errorf("the suite ended without a report (%w): %s", runErr, lastLine(log.Name()))
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = written.Close() }()
	return readReport(written, l)
}

// listen opens a port of the first node's loopback.
func (s subject) listen() (listener net.Listener, err error) {
	err = s.lab.Within(head, func() error {
		listener, err = net.Listen("tcp4", "127.0.0.1:0")
		return err
	})
	return listener, err
}

func (s subject) commandLine(l list, kubectl, progressAt string) []string {
	args := []string{s.ofSuite[ginkgo], fmt.Sprintf("--procs=%d", procs), "--no-color", "--timeout=" + suiteMost}
	args = append(args, l.flags()...)
	return append(args, s.ofSuite[suite], "--",
		"--kubeconfig="+s.cluster.AdminKubeconfig(), "--kubectl-path="+kubectl,
		"--provider=skeleton", fmt.Sprintf("--num-nodes=%d", len(s.lab.Topology.Nodes())),
		"--allowed-not-ready-nodes=0", "--minStartupPods=0", "--disable-log-dump", "--e2e-output-dir="+s.dir,
		"--report-dir="+s.dir, "--report-complete-ginkgo", "--progress-report-url=http://"+progressAt)
}

// lastLine of a log.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// progress hears from the suite as its specs end, and shows how far it is.
type progress struct {
	w     io.Writer
	now   func() time.Time
	began time.Time

	mu                  sync.Mutex
	done, failed, total int
	shown               time.Time
}

// progressPause lies between two lines, progressMost bounds what the suite says.
const (
	progressPause = 15 * time.Second
	progressMost  = 1 << 20
)

// ServeHTTP implements http.Handler: it takes what upstream's progress reporter
// posts.
func (p *progress) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var event struct {
		Message string `json:"msg"`
		Total   int    `json:"total"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, progressMost)).Decode(&event); err != nil {
		return // it is shown less
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = max(p.total, event.Total)
	verb, name, _ := strings.Cut(event.Message, " ")
	switch verb {
	case "PASSED":
		p.done++
	case "FAILED":
		p.done++
		p.failed++
		_, _ = fmt.Fprintf(p.w, "conformance: failed: %s\n", name)
	default:
		return
	}
	if now := p.now(); now.Sub(p.shown) >= progressPause || p.done == p.total {
		p.shown = now
		_, _ = fmt.Fprintf(p.w, "conformance: %d of %d specs, %d failed%s\n", p.done, p.total, p.failed, p.left(now))
	}
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
