package cluster

import (
	"fmt"
	"path/filepath"

	"skerry.dev/skerry/lab/cluster/spec"
)

// Ports of a cluster's control plane, all at its first node.
const (
	apiPort  = 6443
	etcdPort = 2379
)

// plane is the control plane of a cluster, of which the command lines are made.
type plane struct {
	// dir holds its files.
	dir string
	// address is that of its node on the data network, which the nodes call.
	address string
	spec.Network
}

func (p plane) file(name string) string { return filepath.Join(p.dir, name) }

// etcd keeps nothing that outlasts the lab, so it does not wait for a disk.
func (p plane) etcd() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", etcdPort)
	return []string{
		"--name=lab", "--data-dir=" + p.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--log-level=warn",
	}
}

func (p plane) apiServer() []string {
	return []string{
		"kube-apiserver",
		"--advertise-address=" + p.address,
		fmt.Sprintf("--secure-port=%d", apiPort),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + p.file("ca.crt"),
		"--tls-cert-file=" + p.file("apiserver.crt"), "--tls-private-key-file=" + p.file("apiserver.key"),
		"--kubelet-certificate-authority=" + p.file("ca.crt"),
		"--kubelet-client-certificate=" + p.file("apiserver-client.crt"), "--kubelet-client-key=" + p.file("apiserver-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--proxy-client-cert-file=" + p.file("front-proxy.crt"), "--proxy-client-key-file=" + p.file("front-proxy.key"),
		"--requestheader-client-ca-file=" + p.file("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-aggregator-routing=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.file("service-accounts.crt"),
		"--service-account-signing-key-file=" + p.file("service-accounts.key"),
		"--service-cluster-ip-range=" + pair(p.Services, p.Services6),
	}
}

// controllerManager finds a node that is cut off within seconds, and pods that have
// much to do as soon as it is known. From when on a new pod's use counts is Kubernetes'
// default, a whole window of metrics-server after it has become ready: what its start
// takes is no load. Without a certificate it would make one of RSA, half a second of a
// core; so would the scheduler.
func (p plane) controllerManager() []string {
	return []string{
		"kube-controller-manager",
		"--kubeconfig=" + p.file("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + p.file("controller-manager.crt"), "--tls-private-key-file=" + p.file("controller-manager.key"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.file("service-accounts.key"),
		"--root-ca-file=" + p.file("ca.crt"),
		// By default it makes a folder in /usr/libexec.
		"--flex-volume-plugin-dir=/var/lib/kubelet/plugins",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
		"--node-monitor-grace-period=5s", "--node-monitor-period=1s",
		fmt.Sprintf("--horizontal-pod-autoscaler-sync-period=%s", autoscalerPeriod),
	}
}

func (p plane) scheduler() []string {
	return []string{
		"kube-scheduler",
		"--kubeconfig=" + p.file("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + p.file("scheduler.crt"), "--tls-private-key-file=" + p.file("scheduler.key"),
		"--leader-elect=false",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}
}

func (m member) kubelet(dir string) []string {
	return []string{
		"kubelet",
		"--config=" + filepath.Join(dir, "kubelet.yaml"),
		"--config-dir=" + filepath.Join(dir, kubeletDropIns),
		"--kubeconfig=" + filepath.Join(dir, "kubelet.kubeconfig"),
		"--hostname-override=" + m.Host(),
		"--node-ip=" + pair(m.Data.Addr(), m.Data6.Addr()),
	}
}

func (m member) proxy(dir string) []string {
	return []string{"kube-proxy", "--config=" + filepath.Join(dir, "kube-proxy.yaml")}
}

func containerd(dir string) []string {
	return []string{"--config", filepath.Join(dir, "containerd.toml"), "--log-level", "warn"}
}
