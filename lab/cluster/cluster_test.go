package cluster_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

var agent string

func TestMain(m *testing.M) {
	flag.Parse()
	// Labs wait most of their time.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(programs.Main(m, func(dir string) { agent = filepath.Join(dir, "skerry-agent") }))
}

// built are the programs of clusters, without which there is nothing to test.
func built(t *testing.T) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a lab is made")
	}
	b := gobuild.Builder{Catalogue: kube.Catalogue()}
	if lacking := b.Lacking(t.Context()); len(lacking) > 0 {
		t.Skipf("%v are not built: 'skerry kube build' does", lacking)
	}
	paths, err := b.Paths(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// machine is what of it no node may have changed: sysctls, and what lies in /run and
// among the control groups.
func machine(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range []string{
		"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "vm/panic_on_oom", "kernel/keys/root_maxkeys",
		"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/accept_dad",
	} {
		text, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "net/ipv6/") {
			continue // a kernel without it
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+" "+strings.TrimSpace(string(text)))
	}
	for _, pattern := range []string{"/run/*", "/usr/libexec/*", "/sys/fs/cgroup/skerry", "/sys/fs/cgroup/*/skerry"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// A program that ends while its cluster starts is told at once, with its last words.
func TestProgramThatEnds(t *testing.T) {
	paths := built(t)
	broken := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no space left >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths["etcd"] = broken
	topo := topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}}}
	lab, err := host.Up(t.Context(), topo, host.Options{Name: "cluster-broken", Agent: agent, Backend: "auto", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	_, err = cluster.Up(t.Context(), lab, cluster.Options{Programs: paths, Agent: agent, Now: began, Logs: filepath.Join(t.TempDir(), "kept")})
	if want := "cluster c1: etcd-c1-head has ended (exit status 3): no space left"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it was told after %s", took)
	}
	start, ok := errors.AsType[*cluster.StartError](err)
	if !ok {
		t.Fatal("no logs are kept")
	}
	if text, err := os.ReadFile(filepath.Join(start.Logs, "c1/head/etcd.log")); err != nil || string(text) != "no space left\n" {
		t.Errorf("kept of etcd is %q, %v", text, err)
	}
}

// ask requests a page from a node until there is an answer: rules follow a pod that
// is ready by some time.
func ask(t *testing.T, lab *host.Lab, from topology.Ref, address string) string {
	t.Helper()
	// A connection that began towards a pod that has ended since leads nowhere.
	client := &http.Client{Timeout: time.Second / 4, Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return lab.Dial(ctx, from, address)
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", response.Status, err)
		}
		return string(body)
	}
}
