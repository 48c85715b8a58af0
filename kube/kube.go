// Package kube is what Kubernetes clusters in a lab are made of: which programs,
// from which releases of their modules, and how they are built. Each module is
// pinned in pins by a go.mod of its own; its dependencies are none of Skerry's.
// It starts nothing: lab/cluster does.
//
// Another release of Kubernetes is one line here: go generate writes its pin anew.
// Start at Catalogue; gobuild builds it, and makes bundles of it.
package kube

import (
	"embed"
	"path"

	"skerry.dev/skerry/internal/gobuild"
)

//go:generate go run ./gen v1.36.3

//go:embed pins/*.mod pins/*.sum kubernetes/main.go
var files embed.FS

// Kubernetes is the program that is all of Kubernetes' own, each by the name that
// it is called by.
const Kubernetes = "kubernetes"

// Catalogue is the programs of a cluster.
func Catalogue() *gobuild.Catalogue {
	const (
		containerd = "github.com/containerd/containerd/v2"
		plugins    = "github.com/containernetworking/plugins"
		flannel    = "github.com/flannel-io/flannel"
		version    = "k8s.io/component-base/version."
	)
	all := []gobuild.Program{
		{
			Name: Kubernetes, Pin: "kubernetes", Module: "k8s.io/kubernetes", Source: "kubernetes/main.go",
			// Without a version of its own it takes part in no cluster.
			Stamps: []string{version + "gitVersion"},
		},
		{Name: "etcd", Pin: "etcd", Module: "go.etcd.io/etcd/server/v3"},
		{Name: "containerd", Pin: "containerd", Module: containerd, Folder: "cmd/containerd", Tags: "no_btrfs,no_devmapper,no_zfs", Stamps: []string{containerd + "/version.Version"}},
		{Name: "containerd-shim-runc-v2", Pin: "containerd", Module: containerd, Folder: "cmd/containerd-shim-runc-v2", Stamps: []string{containerd + "/version.Version"}},
		{Name: "ctr", Pin: "containerd", Module: containerd, Folder: "cmd/ctr", Stamps: []string{containerd + "/version.Version"}},
		// Seccomp comes from a C library.
		{Name: "runc", Pin: "runc", Module: "github.com/opencontainers/runc", Tags: "seccomp,netgo,osusergo", Cgo: true},
		{Name: "coredns", Pin: "coredns", Module: "github.com/coredns/coredns"},
		{Name: "metrics-server", Pin: "metrics-server", Module: "sigs.k8s.io/metrics-server", Folder: "cmd/metrics-server", Stamps: []string{"k8s.io/client-go/pkg/version.gitVersion"}},
		// One of its back ends is in C, and cannot be left out.
		{Name: "flannel", Pin: "flannel", Module: flannel, Tags: "netgo,osusergo", Cgo: true, Stamps: []string{flannel + "/pkg/version.Version"}},
	}
	for _, plugin := range []string{"main/loopback", "main/ptp", "main/bridge", "ipam/host-local", "meta/portmap", "meta/tuning"} {
		all = append(all, gobuild.Program{Name: path.Base(plugin), Pin: "cni", Module: plugins, Folder: "plugins/" + plugin})
	}
	return &gobuild.Catalogue{Files: files, Programs: all}
}
