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
func (c *Cluster) writeCredentials(now time.Time) (authority, error) {
	a, err := newAuthority(c.Name, now)
	if err != nil {
		return authority{}, err
	}
	if err := os.MkdirAll(c.plane.dir, 0o700); err != nil {
		return authority{}, err
	}
	if err := os.WriteFile(c.plane.file("ca.crt"), a.pem, 0o644); err != nil {
		return authority{}, err
	}
	head := c.members[0]
	identities := []struct {
		file    string
		subject pkix.Name
		hosts   []string
	}{
		{"apiserver", pkix.Name{CommonName: "kube-apiserver"}, append(head.hosts(),
			"127.0.0.1", c.plane.api().String(), "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		)},
		{"apiserver-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}, nil},
		{"front-proxy", pkix.Name{CommonName: "front-proxy"}, nil},
		{"service-accounts", pkix.Name{CommonName: "service-accounts"}, nil},
	}
	for _, i := range identities {
		made, err := a.issue(i.subject, i.hosts...)
		if err == nil {
			err = made.write(c.plane.file(i.file))
		}
		if err != nil {
			return authority{}, err
		}
	}
	for _, client := range clients {
		if err := c.writeKubeconfig(a, client.subject, c.plane.file(client.file+".kubeconfig"), apiAt("127.0.0.1")); err != nil {
			return authority{}, err
		}
	}
	return a, nil
}

// writeNode writes what a node's programs identify themselves by.
func (c *Cluster) writeNode(a authority, m member, dir string) error {
	name := pkix.Name{CommonName: "system:node:" + m.Host(), Organization: []string{"system:nodes"}}
	serving, err := a.issue(name, m.hosts()...)
	if err == nil {
		err = serving.write(filepath.Join(dir, "kubelet"))
	}
	if err != nil {
		return err
	}
	if err := c.writeKubeconfig(a, name, filepath.Join(dir, "kubelet.kubeconfig"), apiAt(c.plane.address)); err != nil {
		return err
	}
	return c.writeKubeconfig(a, pkix.Name{CommonName: "system:kube-proxy"}, filepath.Join(dir, "kube-proxy.kubeconfig"), apiAt(c.plane.address))
}

// write writes FILE.crt and FILE.key.
func (i identity) write(file string) error {
	if err := os.WriteFile(file+".crt", i.certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(file+".key", i.key, 0o600)
}

// apiAt is where the API server takes calls, at a host.
func apiAt(host string) string { return net.JoinHostPort(host, strconv.Itoa(apiPort)) }

// writeKubeconfig writes how a client calls the API server at HOST:PORT.
func (c *Cluster) writeKubeconfig(a authority, subject pkix.Name, file, address string) error {
	made, err := a.issue(subject)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters[c.Name] = &api.Cluster{Server: "https://" + address, CertificateAuthorityData: a.pem}
	config.AuthInfos[subject.CommonName] = &api.AuthInfo{ClientCertificateData: made.certificate, ClientKeyData: made.key}
	config.Contexts[c.Name] = &api.Context{Cluster: c.Name, AuthInfo: subject.CommonName}
	config.CurrentContext = c.Name
	return clientcmd.WriteToFile(*config, file)
}
