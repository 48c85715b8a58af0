package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/topology"
)

// resources is a cluster with a node that has less than the machine, with metrics-server
// and a registry.
type resources struct {
	on      site
	cluster *cluster.Cluster
	api     kubernetes.Interface
	kubectl []string
}

const (
	smallMilli  = 250
	smallMemory = 256 << 20
	burnPort    = 30083
	scaledPort  = 30084
)

// bounded has a node and its pods be bounded, measured and scaled, and a registry keep
// images.
func bounded(t *testing.T, on site) {
	kubeconfig := cluster.Kubeconfig(on.lab, on.name)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := resources{on, open(t, on), api, []string{built(t)["kubernetes"], "kubectl", "--kubeconfig", kubeconfig}}
	t.Run("capacity", r.capacity)
	t.Run("registry", r.registry)
	burn := cluster.Workload{Name: "burn", Nodes: []topology.Ref{small}, Port: 8080, NodePort: burnPort, Args: []string{"serve", "burn", "--listen", "0.0.0.0:8080"}}
	if err := r.cluster.Deploy(t.Context(), burn); err != nil {
		t.Fatal(err)
	}
	burning, stop := context.WithCancel(t.Context())
	for range 2 { // more than the node has
		go func() {
			for burning.Err() == nil { // kube-proxy's rules follow the pod
				_, _ = r.burn(burning, burnPort, "ms=60000")
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	t.Run("quota", r.quota)
	t.Run("metrics", r.metrics)
	stop()
	t.Run("memory", r.memory)
	if err := r.cluster.Remove(t.Context(), burn.Name); err != nil { // it has what the node has
		t.Fatal(err)
	}
	t.Run("autoscale", r.autoscale)
}

// The node has what it was given, and says so.
func (r resources) capacity(t *testing.T) {
	for node, want := range map[string]struct{ cpu, allocatable, memory string }{
		"c1-small": {"1", "250m", "256Mi"},
		"c1-head":  {},
	} {
		n, err := r.api.CoreV1().Nodes().Get(t.Context(), node, meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has, gives := n.Status.Capacity, n.Status.Allocatable
		if want.cpu == "" {
			if has.Cpu().Cmp(*gives.Cpu()) != 0 || has.Memory().Value() <= smallMemory {
				t.Errorf("%s, which has all, has %v and gives %v", node, has, gives)
			}
			continue
		}
		if has.Cpu().String() != want.cpu || gives.Cpu().String() != want.allocatable ||
			has.Memory().Cmp(resource.MustParse(want.memory)) != 0 || gives.Memory().Cmp(*has.Memory()) != 0 {
			t.Errorf("%s has %v and gives %v", node, has, gives)
		}
	}
}

// burn asks the workload to use CPU time or memory.
func (r resources) burn(ctx context.Context, port int, query string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return r.on.lab.Dial(ctx, r.on.head(), address)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/?%s", r.on.at("small", port), query), nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.Status + " " + string(body), err
}

// A pod that wants more CPU time than its node has gets what the node has.
func (r resources) quota(t *testing.T) {
	use := func() time.Duration {
		pods, err := r.cluster.Pods(t.Context(), "burn")
		if err != nil || len(pods) != 1 {
			t.Fatalf("%+v, %v", pods, err)
		}
		return pods[0].Use.CPU
	}
	deadline := time.Now().Add(10 * time.Second)
	for use() < 500*time.Millisecond { // the requests have come
		if time.Now().After(deadline) {
			t.Fatal("it does not burn")
		}
		time.Sleep(50 * time.Millisecond)
	}
	// In no second does it use more. Less it may, where the machine has none to give.
	const seconds, has = 40, smallMilli / 1000.0
	const most, least = 1.1 * has, 0.9 * has
	best := 0.0
	for range seconds {
		before, began := use(), time.Now()
		time.Sleep(time.Second)
		share := (use() - before).Seconds() / time.Since(began).Seconds()
		if best = max(best, share); best >= least {
			break
		}
	}
	if best < least || best > most {
		t.Errorf("it used %.3f of a core, and the node has %g", best, has)
	}
}

// kubectl top tells of each node what its pods use, not what the machine does.
func (r resources) metrics(t *testing.T) {
	var list struct {
		Items []struct {
			Metadata meta.ObjectMeta
			Usage    core.ResourceList
		}
	}
	if err := cluster.AwaitMetrics(t.Context(), []*cluster.Cluster{r.cluster}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		text, err := r.api.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").DoRaw(t.Context())
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		cpu := map[string]int64{}
		for _, n := range list.Items {
			cpu[n.Metadata.Name] = n.Usage.Cpu().MilliValue()
		}
		if cpu["c1-small"] > smallMilli*3/5 && cpu["c1-small"] < smallMilli*6/5 && cpu["c1-head"] > 0 && cpu["c1-head"] < smallMilli*3/5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nodes use %v thousandths of a core, %v", cpu, err)
		}
		time.Sleep(time.Second)
	}
	for what, want := range map[string]string{"nodes": "c1-small", "pods": "burn-"} {
		args := slices.Concat(r.kubectl[1:], []string{"top", what})
		out, err := exec.CommandContext(t.Context(), r.kubectl[0], args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("kubectl top %s: %v\n%s", what, err, out)
		}
	}
}

// A pod that takes more memory than its node has is ended, and that is told.
func (r resources) memory(t *testing.T) {
	if said, err := r.burn(t.Context(), burnPort, "mb=400"); err == nil {
		t.Errorf("400 MB of 268 were had: %s", said)
	}
	const want = "OOMKilled, exit status 137"
	deadline := time.Now().Add(20 * time.Second)
	for {
		pods, err := r.cluster.Pods(t.Context(), "burn")
		if err == nil && len(pods) == 1 && pods[0].Ended == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("its pods are %+v, %v", pods, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// A workload that uses more CPU time than is aimed at gets more pods, over its nodes,
// and each is told as it comes.
func (r resources) autoscale(t *testing.T) {
	const most, within = 3, 90 * time.Second
	w := cluster.Workload{
		Name: "scaled", Nodes: []topology.Ref{small, r.on.head()}, Port: 8080, NodePort: scaledPort,
		Args: []string{"serve", "burn", "--listen", "0.0.0.0:8080"}, Autoscale: &cluster.Autoscale{Min: 1, Max: most, Percent: 50, MilliCPU: 100},
	}
	if err := r.cluster.Deploy(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.cluster.Remove(context.WithoutCancel(t.Context()), w.Name); err != nil {
			t.Error(err)
		}
	}()
	if pods, err := r.cluster.Pods(t.Context(), w.Name); err != nil || len(pods) != 1 || pods[0].Node != w.Nodes[0] {
		t.Fatalf("it begins with %+v, %v", pods, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	for range 2 {
		go func() {
			for ctx.Err() == nil {
				_, _ = r.burn(ctx, scaledPort, "ms=200")
			}
		}()
	}
	var told []int
	began := time.Now()
	err := r.cluster.Follow(ctx, w.Name, func(pods int) {
		t.Logf("%d pods after %s", pods, time.Since(began).Round(time.Millisecond))
		if told = append(told, pods); pods == most {
			stop()
		}
	})
	if err != nil || len(told) < 2 || told[0] != 1 || !slices.IsSorted(told) || told[len(told)-1] != most {
		t.Fatalf("told were %v pods within %s, %v", told, within, err)
	}
	at := map[topology.Ref]bool{}
	pods, err := r.cluster.Pods(t.Context(), w.Name)
	for _, p := range pods {
		at[p.Node] = true
	}
	if err != nil || len(pods) != most || len(at) != len(w.Nodes) {
		t.Errorf("the pods are %+v, %v", pods, err)
	}
}

// An image that this machine pushes is pulled by a node, by the registry's name and
// by the one that it was pushed to.
func (r resources) registry(t *testing.T) {
	address, err := cluster.Registry(r.on.lab)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(cluster.AgentImage)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(r.on.lab.Dir(), "images.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	push(t, address, image)
	for i, from := range []string{cluster.RegistryName, address} {
		pod := &core.Pod{
			ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("pulled-%d", i), Namespace: "default"},
			Spec: core.PodSpec{
				NodeSelector:                  map[string]string{core.LabelHostname: "c1-small"},
				TerminationGracePeriodSeconds: new(int64(0)),
				Containers:                    []core.Container{{Name: "pulled", Image: from + "/app:1", ImagePullPolicy: core.PullAlways, Args: []string{"hold"}}},
			},
		}
		if _, err := r.api.CoreV1().Pods("default").Create(t.Context(), pod, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(20 * time.Second)
		for {
			now, err := r.api.CoreV1().Pods("default").Get(t.Context(), pod.Name, meta.GetOptions{})
			if err == nil && now.Status.Phase == core.PodRunning {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not run: %+v, %v", from, now.Status.ContainerStatuses, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// push hands an image to a registry as app:1, as docker push does.
func push(t *testing.T, address string, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		content, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		hand(t, address, "blobs/uploads/?digest="+digest.String(), blob, content)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	hand(t, address, "blobs/uploads/?digest="+digest.String(), blob, bytes.NewReader(config))
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := image.MediaType()
	if err != nil {
		t.Fatal(err)
	}
	hand(t, address, "manifests/1", string(kind), bytes.NewReader(manifest))
}

// blob is the media type of what a registry knows by its digest alone.
const blob = "application/octet-stream"

// hand sends one part of the image app to a registry.
func hand(t *testing.T, address, path, kind string, content io.Reader) {
	t.Helper()
	method := http.MethodPost
	if kind != blob {
		method = http.MethodPut
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/v2/app/"+path, content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}
