package guest_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/guest"
	"skerry.dev/skerry/kube"
)

// clusterFlag asks for what is too long for make test.
var clusterFlag = flag.Bool("cluster", false, "run a Kubernetes cluster in a guest with control groups of version 2")

const (
	// clusterTimeout bounds that guest's whole life.
	clusterTimeout = 40 * time.Minute
	bundleFile     = "/bundle"
	experimentFile = "/cluster.yaml"
)

// clusterPrograms are what clusters start of the machine's.
var clusterPrograms = []string{"nft", "ip", "mount", "umount"}

// clusterModules are what clusters rely on in the kernel.
var clusterModules = []string{
	"overlay", "nf_conntrack", "nf_nat", "nft_chain_nat", "nft_nat", "nft_masq", "nft_redir", "nft_ct", "nft_numgen", "nft_hash",
	"nft_fib_inet", "nft_fib_ipv4", "nft_fib_ipv6", "nft_reject_ipv4", "nft_reject_ipv6", "nft_reject_inet", "nft_limit", "nft_log", "nft_objref",
}

// ipvsPrograms are what a run, and kube-proxy in the mode ipvs, start besides, ipvsModules what
// that relies on.
var (
	ipvsPrograms = []string{"sh", "ipset", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
	ipvsModules  = []string{
		"dummy", "ip_vs", "ip_vs_rr", "ip_set", "ip_set_bitmap_port", "ip_set_hash_ip", "ip_set_hash_ipport", "ip_set_hash_ipportip", "ip_set_hash_ipportnet",
		"xt_addrtype", "xt_comment", "xt_conntrack", "xt_mark", "xt_MASQUERADE", "xt_nat", "xt_set", "xt_statistic", "xt_tcpudp",
	}
	// xtables are the extensions that iptables loads, and mathematics what one of them does.
	xtables, mathematics = "/usr/lib/x86_64-linux-gnu/xtables/*.so", "/lib/x86_64-linux-gnu/libm.so.6"
)

// TestCluster runs a cluster as its user would where control groups are of version 2,
// with programs that come as a bundle:
//
//	go test ./test/guest -run TestCluster -cluster -v
func TestCluster(t *testing.T) {
	inGuest(t, furniture{programs: clusterPrograms, modules: clusterModules}, "testdata/cluster.yaml", testCluster)
}

// TestIPVS measures kube-proxy in the mode that few machines' kernels have:
//
//	go test ./test/guest -run TestIPVS -cluster -v
func TestIPVS(t *testing.T) {
	extensions, err := filepath.Glob(xtables)
	must(t, err)
	inGuest(t, furniture{
		programs: slices.Concat(clusterPrograms, ipvsPrograms), modules: slices.Concat(clusterModules, ipvsModules), files: append(extensions, mathematics),
	}, "testdata/ipvs.yaml", testIPVS)
}

// furniture is what a guest has of this machine.
type furniture struct{ programs, modules, files []string }

// inGuest has a test run in a guest that also has a bundle and an experiment.
func inGuest(t *testing.T, has furniture, experiment string, test func(*testing.T)) {
	if guest.Inside() {
		prepare(t)
		tell(t, "skerry", "kube", "bundle", "import", bundleFile)
		must(t, os.Remove(bundleFile))
		test(t)
		return
	}
	if !*clusterFlag {
		t.Skip("takes minutes: -cluster asks for it")
	}
	machine := newMachine(t)
	files := map[string]string{bundleFile: filepath.Join(t.TempDir(), "bundle"), experimentFile: experiment, "/etc/passwd": "/etc/passwd"}
	for _, file := range has.files {
		files[file] = file
	}
	machine.Programs, machine.Files, machine.Modules, machine.Large = slices.Clone(has.programs), files, has.modules, true
	addSkerry(t, &machine)
	bundle, err := os.Create(files[bundleFile])
	must(t, err)
	must(t, gobuild.Builder{Catalogue: kube.Catalogue()}.Export(t.Context(), bundle))
	must(t, bundle.Close())
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	must(t, machine.Run(ctx, t.Output()))
}

// prepare makes the guest's machine one that labs, and clusters, can be taken up on.
func prepare(t *testing.T) {
	must(t, guest.NewRoot())
	tree, err := cgroup.FindHere()
	if err != nil || tree.Version() != 2 {
		t.Fatalf("found version %d, %v", tree.Version(), err)
	}
	// kubectl calls API servers by it.
	must(t, netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo"}}))
	t.Setenv("XDG_CACHE_HOME", "/tmp/cache")
	t.Setenv("HOME", "/tmp")
	t.Cleanup(func() { tellLogs(t) })
}

// testIPVS runs an experiment, of which every request is to be answered by way of a kube-proxy
// that says that it uses ipvs.
func testIPVS(t *testing.T) {
	tell(t, "skerry", "up", experimentFile, "--name", "guest")
	if said := tell(t, "skerry", "logs", "guest", "c1/worker:kube-proxy"); !strings.Contains(said, "Using ipvs Proxier") {
		t.Error("kube-proxy does not tell of ipvs")
	}
	tell(t, "skerry", "down", "guest")
	table := tell(t, "skerry", "run", experimentFile, "--out", "/tmp/out")
	if !regexp.MustCompile(`(?m)^lcl +kube-proxy .* 0 +[1-9][0-9]*$`).MatchString(table) {
		t.Error("a request was not answered, or none was sent")
	}
}

// testCluster takes a cluster up and asks a service of it, by way of its API server.
func testCluster(t *testing.T) {
	tell(t, "skerry", "up", experimentFile, "--name", "guest")
	tell(t, "skerry", "kubeconfig", "guest", "c1", "--out", "/tmp/kubeconfig")
	kubernetes, err := filepath.Glob("/tmp/cache/skerry/programs/kubernetes-*/kubernetes")
	if err != nil || len(kubernetes) != 1 {
		t.Fatalf("found %v, %v", kubernetes, err)
	}
	kubectl := func(args ...string) string {
		return tell(t, append([]string{kubernetes[0], "kubectl", "--kubeconfig", "/tmp/kubeconfig"}, args...)...)
	}
	if nodes := kubectl("get", "nodes"); strings.Count(nodes, " Ready ") != 2 {
		t.Errorf("its nodes are\n%s", nodes)
	}
	kubectl("create", "deployment", "hello", "--image=skerry.local/agent:lab", "--port=8080", "--", "/skerry-agent", "serve", "hello-world", "--listen", "0.0.0.0:8080")
	kubectl("expose", "deployment", "hello", "--port=8080")
	kubectl("rollout", "status", "deployment/hello", "--timeout=120s")
	if said := kubectl("get", "--raw", "/api/v1/namespaces/default/services/hello:8080/proxy/"); said == "" {
		t.Error("the service says nothing")
	}
	tell(t, "skerry", "down", "guest")
	if _, err := os.Stat("/sys/fs/cgroup/skerry/guest"); err == nil {
		t.Error("its control groups are left")
	}
}

// tellLogs tells of a test that has failed what the programs of its clusters said last.
func tellLogs(t *testing.T) {
	logs, err := filepath.Glob("/tmp/skerry-guest-logs-*/*/*/*.log")
	if err != nil || !t.Failed() {
		return
	}
	for _, path := range logs {
		const last = 1500
		if text, err := os.ReadFile(path); err == nil {
			t.Logf("%s\n%s", path, text[max(0, len(text)-last):])
		}
	}
}

// tell runs a program and gives what it says.
func tell(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("%s\n%s", strings.Join(args[:min(len(args), 3)], " "), out)
	return string(out)
}
