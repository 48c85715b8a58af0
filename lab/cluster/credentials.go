package cluster

import (
	"crypto/x509/pkix"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"skerry.dev/skerry/lab/cluster/pki"
)

// client is who calls the API server, by the names that RBAC binds its rights to.
type client struct {
	file    string
	subject pkix.Name
}

// clients of a control plane.
var clients = []client{
	{"admin", pkix.Name{CommonName: "skerry", Organization: []string{"system:masters"}}},
	{"controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"}},
	{"scheduler", pkix.Name{CommonName: "system:kube-scheduler"}},
}

// writeCredentials makes the authority of a cluster, and writes what its control
// plane identifies itself by.
func (c *Cluster) writeCredentials(now time.Time) (pki.Authority, error) {
	a, err := pki.New(c.Name, now)
	if err != nil {
		return pki.Authority{}, err
	}
	if err := os.MkdirAll(c.plane.dir, 0o700); err != nil {
		return pki.Authority{}, err
	}
	if err := os.WriteFile(c.plane.file("ca.crt"), a.PEM, 0o644); err != nil {
		return pki.Authority{}, err
	}
	head := c.members[0]
	identities := []struct {
		file    string
		subject pkix.Name
		hosts   []string
	}{
		{"apiserver", pkix.Name{CommonName: "kube-apiserver"}, append(head.hosts(),
			"127.0.0.1", c.plane.API().String(), "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		)},
		{"apiserver-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}, nil},
		{"front-proxy", pkix.Name{CommonName: "front-proxy"}, nil},
		{"service-accounts", pkix.Name{CommonName: "service-accounts"}, nil},
		{"controller-manager", pkix.Name{CommonName: "kube-controller-manager"}, []string{"127.0.0.1", "localhost"}},
		{"scheduler", pkix.Name{CommonName: "kube-scheduler"}, []string{"127.0.0.1", "localhost"}},
	}
	for _, i := range identities {
		made, err := a.Issue(i.subject, i.hosts...)
		if err == nil {
			err = made.Write(c.plane.file(i.file))
		}
		if err != nil {
			return pki.Authority{}, err
		}
	}
	for _, client := range clients {
		if err := c.writeKubeconfig(a, client.subject, c.plane.file(client.file+".kubeconfig"), apiAt("127.0.0.1")); err != nil {
			return pki.Authority{}, err
		}
	}
	return a, nil
}

// writeNode writes what a node's programs identify themselves by.
func (c *Cluster) writeNode(a pki.Authority, m member, dir string) error {
	name := pkix.Name{CommonName: "system:node:" + m.Host(), Organization: []string{"system:nodes"}}
	serving, err := a.Issue(name, m.hosts()...)
	if err == nil {
		err = serving.Write(filepath.Join(dir, "kubelet"))
	}
	if err != nil {
		return err
	}
	if err := c.writeKubeconfig(a, name, filepath.Join(dir, "kubelet.kubeconfig"), apiAt(c.plane.address)); err != nil {
		return err
	}
	return c.writeKubeconfig(a, pkix.Name{CommonName: "system:kube-proxy"}, filepath.Join(dir, "kube-proxy.kubeconfig"), apiAt(c.plane.address))
}

// AdminKubeconfig is the path of the file by which a program in the first node
// calls the API server, past every link.
func (c *Cluster) AdminKubeconfig() string { return c.plane.file(clients[0].file + ".kubeconfig") }

// apiAt is where the API server takes calls, at a host.
func apiAt(host string) string { return net.JoinHostPort(host, strconv.Itoa(apiPort)) }

// writeKubeconfig writes how a client calls the API server at HOST:PORT.
func (c *Cluster) writeKubeconfig(a pki.Authority, subject pkix.Name, file, address string) error {
	made, err := a.Issue(subject)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters[c.Name] = &api.Cluster{Server: "https://" + address, CertificateAuthorityData: a.PEM}
	config.AuthInfos[subject.CommonName] = &api.AuthInfo{ClientCertificateData: made.Certificate, ClientKeyData: made.Key}
	config.Contexts[c.Name] = &api.Context{Cluster: c.Name, AuthInfo: subject.CommonName}
	config.CurrentContext = c.Name
	return clientcmd.WriteToFile(*config, file)
}
