package cluster

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"text/template"

	"skerry.dev/skerry/lab/cluster/spec"
)

// files are the configurations of a node's programs, and manifests what a cluster
// has from the start, as text/template over settings.
//
//go:embed files manifests
var files embed.FS

// settings are what differs between the nodes.
type settings struct {
	// Name of the node, and of the one with the control plane. Dir holds its files,
	// ClusterDir those of its cluster.
	Name, Head, Dir, ClusterDir string
	// PodGroup is the control group that its pods are below.
	PodGroup string
	// Pods of the cluster, NodePods of the node, as CIDRs; DNS is the address of the
	// cluster's.
	Pods, NodePods, DNS string
	ranges6
	// Spec with the CNI and the proxy.
	spec.Spec
	// CoreDNSEnv is environment that CoreDNS has of ours.
	CoreDNSEnv map[string]string
	// Sysctls of pods, by their paths below /proc/sys.
	Sysctls map[string]string
	// PluginDirs hold the CNI plugins; Runc is the path of runc.
	PluginDirs []string
	Runc       string
	// Pause is the image that holds a pod's namespaces.
	Pause string
}

// ranges6 are those of pods of IPv6, empty where the lab is not dual.
type ranges6 struct{ Pods6, NodePods6 string }

// MTU of pods' interfaces, 0 for that of their node's: a tunnel takes its headers of
// each packet, and those of IPv6 are longer.
func (s settings) MTU() int {
	const longer = 20
	mtu := s.Spec.MTU()
	if mtu > 0 && s.Pods6 != "" {
		mtu -= longer
	}
	return mtu
}

// render gives the text of one of files, such as "files/kubelet.yaml".
func (s settings) render(name string) ([]byte, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Funcs(template.FuncMap{"json": toJSON, "image": imageName}).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// toJSON writes a value into a file of JSON.
func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}
