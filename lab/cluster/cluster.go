// Package cluster is the kubernetes substrate: it makes each cluster of a lab a
// Kubernetes cluster. Its nodes are the lab's, each with a containerd, a kubelet
// and a kube-proxy of its own; its first node also has the control plane. Nodes
// call the API server, and pods one another, over the data network, whose links a
// lab impairs; the lab itself calls it from within its node. All processes are in the lab's
// control groups and all files in its folder, so that the lab's end is theirs.
// lab/cluster/spec says what can be chosen of them, lab/cluster/preflight beforehand what
// speaks against them on this machine. Start at Up.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"skerry.dev/skerry/lab/cluster/image"
	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/cluster/pki"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
)

// Options of the clusters of a lab.
type Options struct {
	// Programs are the paths of what a cluster is made of, by name: those of
	// kube.Catalogue.
	Programs map[string]string
	// Agent is the path of the skerry-agent binary, of which images are made.
	Agent string
	// PodPrograms are paths of further static programs, of which nodes have the images that
	// ImageOf names.
	PodPrograms []string
	// Keep are further folders that nodes need as they are on the machine: they have
	// a /var/lib, /var/log and /run of their own.
	Keep []string
	// Spec is what is chosen of them.
	spec.Spec
	Now time.Time
	// Logs begins the path of a new folder, which is made where clusters do not start
	// and keeps what their programs said; empty, that is lost with the lab.
	Logs string
}

// Cluster is one that is up.
type Cluster struct {
	Name    string
	lab     *host.Lab
	options Options
	members []member
	plane   plane
	// images are the archives of those that every node has, and of those that the
	// first has besides.
	images, more string
	config       *rest.Config
	client       kubernetes.Interface
	// programs that are to stay, in the order in which they were started.
	mu       sync.Mutex
	programs []started
	// recorded are the programs of a cluster that is up, whoever has started them.
	recorded []program
}

// Archives of images in the lab's folder: those of every node, and those of the
// first besides.
const nodeArchive, headArchive = "images.tar", "more.tar"

// kubeconfigFile is for whoever calls a cluster from the machine itself.
const kubeconfigFile = "kubeconfig"

// Kubeconfig is the path of the file by which kubectl and others on this machine
// call a cluster of a lab.
func Kubeconfig(lab *host.Lab, cluster string) string {
	return filepath.Join(dirOf(lab, cluster), kubeconfigFile)
}

func dirOf(lab *host.Lab, cluster string) string {
	return filepath.Join(lab.Dir(), "clusters", cluster)
}

// startTimeout bounds how long a cluster may take until its nodes are ready: ten
// seconds here, some minutes on a small board. A program that ends is told at once.
const startTimeout = 5 * time.Minute

// Up makes every cluster of a lab a Kubernetes cluster, in parallel, and returns
// when all nodes and pods are ready, but for those that AwaitMetrics waits for. After an
// error the lab is to be taken down.
func Up(ctx context.Context, lab *host.Lab, o Options) ([]*Cluster, error) {
	clusters, err := startAll(ctx, lab, o)
	if err != nil && ctx.Err() == nil {
		err = keepLogs(lab, o.Logs, err)
	}
	return clusters, err
}

func startAll(ctx context.Context, lab *host.Lab, o Options) ([]*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	if o.Spec, err = o.Complete(&lab.Topology); err != nil {
		return nil, err
	}
	clusters := make([]*Cluster, len(lab.Topology.Clusters))
	starting, ctx := errgroup.WithContext(ctx)
	// Nodes wait for them alone; meanwhile control planes start.
	packed := make(chan struct{})
	starting.Go(func() error {
		err := errors.Join(image.Write(filepath.Join(lab.Dir(), nodeArchive), nodeImages(o)), image.Write(filepath.Join(lab.Dir(), headArchive), headImages(o)))
		if err == nil {
			close(packed)
		}
		return err
	})
	for i, c := range lab.Topology.Clusters {
		clusters[i] = newCluster(lab, i, o)
		if err := clusters[i].startRegistry(); err != nil {
			return nil, err
		}
		starting.Go(func() error {
			if err := clusters[i].start(ctx, packed); err != nil {
				return fmt.Errorf("cluster %s: %w", c.Name, err)
			}
			return nil
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	return clusters, nil
}

// newCluster is cluster i of a lab, from 0, of which nothing is started.
func newCluster(lab *host.Lab, i int, o Options) *Cluster {
	name, network := lab.Topology.Clusters[i].Name, o.Network(&lab.Topology, i)
	all := membersOf(&lab.Topology, i, network)
	return &Cluster{
		Name: name, lab: lab, options: o, members: all,
		images: filepath.Join(lab.Dir(), nodeArchive), more: filepath.Join(lab.Dir(), headArchive),
		plane: plane{dir: dirOf(lab, name), address: all[0].Data.Addr().String(), Network: network},
	}
}

// start takes a cluster up: its nodes' own folders before anything runs in them, then
// the runtimes of its nodes while its control plane starts, then what calls the API
// server.
func (c *Cluster) start(ctx context.Context, packed <-chan struct{}) error {
	a, err := c.writeCredentials(c.options.Now)
	if err != nil {
		return err
	}
	for _, m := range c.members {
		if err := errors.Join(c.writeFiles(a, m), c.prepare(m)); err != nil {
			return err
		}
	}
	starting, both := errgroup.WithContext(ctx)
	for _, m := range c.members {
		starting.Go(func() error { return c.startRuntime(both, m, packed) })
	}
	starting.Go(func() error { return c.startPlane(both, a) })
	if err := starting.Wait(); err != nil {
		return err
	}
	for _, m := range c.members {
		if err := errors.Join(c.run(m, "kubelet", m.kubelet(c.dirOf(m))), c.startProxy(m)); err != nil {
			return err
		}
	}
	if err := c.startFlannel(ctx, a); err != nil {
		return err
	}
	if err := c.awaitNodes(ctx); err != nil {
		return err
	}
	if err := c.awaitPods(ctx, "!"+metricsLabel); err != nil {
		return err
	}
	return c.record()
}

// startPlane starts the control plane; what calls the API server once that is
// ready, or it would wait for its own patience afterwards.
func (c *Cluster) startPlane(ctx context.Context, a pki.Authority) error {
	head := c.members[0]
	if err := c.startProgram(head, "etcd", append([]string{c.options.Programs["etcd"]}, c.plane.etcd()...)); err != nil {
		return err
	}
	if err := c.run(head, "kube-apiserver", c.plane.apiServer()); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.awaitAPI(ctx); err != nil {
		return err
	}
	if err := errors.Join(c.registerNodes(ctx), c.startDNS(ctx), c.startMetrics(ctx)); err != nil {
		return err
	}
	return errors.Join(
		c.run(head, "kube-controller-manager", c.plane.controllerManager()),
		c.run(head, "kube-scheduler", c.plane.scheduler()),
		c.startForward(a))
}

// startForward has the machine itself reach the API server, and writes the kubeconfig
// that says where.
func (c *Cluster) startForward(a pki.Authority) error {
	address, err := c.forward("forward", apiPort)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	return c.writeKubeconfig(a, clients[0].subject, c.plane.file(kubeconfigFile), address)
}

// forward has a port of the machine's loopback lead to one of the first node, and
// tells the address that it is at.
func (c *Cluster) forward(name string, port uint16) (address string, err error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", err
	}
	file, err := listener.File()
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, file.Close(), listener.Close()) }()
	head := c.members[0]
	to := netip.AddrPortFrom(head.Mgmt.Addr(), port).String()
	return listener.Addr().String(), c.startProgram(head, name, []string{c.options.Agent, "forward", "--to", to}, file)
}

// prepare makes a node a place that a kubelet can live in. What runs there already would
// lose its folders for a moment.
func (c *Cluster) prepare(m member) error {
	plan := node.Plan{
		Dir: c.dirOf(m), Kept: c.kept(), Routes: c.routes(m), Congestion: c.lab.Topology.CongestionControl(),
		Bridged: c.options.Bridged(), Dual: c.lab.Topology.Dual,
	}
	if err := c.lab.Within(m.Ref(), func() error { return node.Prepare(plan) }); err != nil {
		return fmt.Errorf("prepare node %s: %w", m, err)
	}
	return nil
}

// startRuntime starts a node's containerd, with the lab's images once they are packed.
func (c *Cluster) startRuntime(ctx context.Context, m member, packed <-chan struct{}) error {
	if err := c.nft(ctx, m, "-f", c.masquerade(m)); err != nil {
		return err
	}
	if err := c.startProgram(m, "containerd", append([]string{c.options.Programs["containerd"]}, containerd(c.dirOf(m))...)); err != nil {
		return err
	}
	select {
	case <-packed:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.importImages(ctx, m, c.images); err != nil || m.Node != c.members[0].Node {
		return err
	}
	return c.importImages(ctx, m, c.more)
}

// routes of a node to the pods of the others, but for those that tunnels make.
func (c *Cluster) routes(m member) (routes []node.Route) {
	for _, other := range c.members {
		if other.Node != m.Node && !c.options.Tunnels() {
			routes = append(routes, node.Route{Pods: other.pods, Via: other.Data.Addr()})
			if other.pods6.IsValid() {
				routes = append(routes, node.Route{Pods: other.pods6, Via: other.Data6.Addr()})
			}
		}
	}
	return routes
}

// masquerade is the file of the rules by which pods call what is outside.
func (c *Cluster) masquerade(m member) string { return filepath.Join(c.dirOf(m), "masquerade.nft") }

// nft changes the packet filter of a node.
func (c *Cluster) nft(ctx context.Context, m member, args ...string) error {
	var said bytes.Buffer
	err := c.lab.Run(ctx, host.Command{Node: m.Ref(), Name: m.process("nft"), Args: append([]string{"nft"}, args...), Stdout: &said, Stderr: &said})
	if err != nil {
		return fmt.Errorf("nft at node %s: %w: %s", m, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// kept are the folders that nodes see as the machine does, wherever they lie and a
// symbolic link leads: those of all labs, of programs, and what the caller names.
func (c *Cluster) kept() []string {
	all := append([]string{filepath.Dir(c.lab.Dir()), filepath.Dir(c.options.Agent)}, c.options.Keep...)
	for _, path := range c.options.Programs {
		all = append(all, filepath.Dir(path))
	}
	for i, path := range all {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			all[i] = resolved
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pollPause lies between two looks at what is starting.
const pollPause = 50 * time.Millisecond

func (c *Cluster) dirOf(m member) string { return filepath.Join(c.plane.dir, m.Name) }

// settings are those that the nodes have in common.
func (c *Cluster) settings() settings {
	var six ranges6
	if c.lab.Topology.Dual {
		six.Pods6 = c.plane.Pods6.String()
	}
	return settings{
		Head: c.members[0].Host(), ClusterDir: c.plane.dir, Pods: c.plane.Pods.String(), DNS: c.plane.DNS().String(), ranges6: six,
		Spec: c.options.Spec, CoreDNSEnv: c.apiEnv(), Sysctls: host.TransportSysctls(), Runc: c.options.Programs["runc"], Pause: pauseImage,
	}
}

// startDNS has CoreDNS run in the cluster.
func (c *Cluster) startDNS(ctx context.Context) error {
	manifest, err := c.settings().render("manifests/coredns.yaml")
	if err != nil {
		return err
	}
	return c.apply(ctx, manifest)
}

// writeFiles writes the configuration and the credentials of a node.
func (c *Cluster) writeFiles(a pki.Authority, m member) error {
	group, err := c.lab.Delegate(m.podGroup())
	if err != nil {
		return err
	}
	if err := c.equip(m); err != nil {
		return err
	}
	s := c.settings()
	s.Name, s.Dir, s.PodGroup, s.NodePods = m.Host(), c.dirOf(m), group, m.pods.String()
	if m.pods6.IsValid() {
		s.NodePods6 = m.pods6.String()
	}
	for _, plugin := range c.options.Plugins() {
		s.PluginDirs = append(s.PluginDirs, filepath.Dir(c.options.Programs[plugin]))
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "cni"), 0o755); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"files/containerd.toml": "containerd.toml", "files/kubelet.yaml": "kubelet.yaml", "files/kube-proxy.yaml": "kube-proxy.yaml",
		"files/cni.json": "cni/10-pods.conflist", "files/masquerade.nft": "masquerade.nft",
	} {
		text, err := s.render(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.Dir, to), text, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "resolv.conf"), nil, 0o644); err != nil {
		return err
	}
	return c.writeNode(a, m, s.Dir)
}
