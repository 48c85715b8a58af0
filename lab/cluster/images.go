package cluster

import (
	"path/filepath"

	"skerry.dev/skerry/lab/cluster/image"
	"skerry.dev/skerry/lab/cluster/spec"
)

// Images that are made of the lab's own programs; they come from no registry.
const (
	// AgentImage runs skerry-agent, whose role and flags are a container's args.
	AgentImage = "skerry.local/agent:lab"
	// pauseImage holds the namespaces of a pod: skerry-agent can do nothing, too.
	pauseImage   = "skerry.local/pause:lab"
	coreDNSImage = "skerry.local/coredns:lab"
)

// nodeImages are those that every node has.
func nodeImages(o Options) []image.Image {
	images := []image.Image{
		{Reference: AgentImage, Program: o.Agent, Entrypoint: []string{"/skerry-agent"}},
		{Reference: pauseImage, Program: o.Agent, Entrypoint: []string{"/skerry-agent", "hold"}},
	}
	for _, path := range o.PodPrograms {
		images = append(images, image.Image{Reference: ImageOf(path), Program: path, Entrypoint: []string{"/" + filepath.Base(path)}})
	}
	return images
}

// ImageOf a program is the name of the image that nodes have of it.
func ImageOf(path string) string { return imageName(filepath.Base(path)) }

// headImages are those that a cluster's first node has besides: images are in memory,
// as all that nodes have of their own.
func headImages(o Options) []image.Image {
	images := []image.Image{{Reference: coreDNSImage, Program: o.Programs["coredns"], Entrypoint: []string{"/coredns"}}}
	if o.Metrics {
		images = append(images, image.Image{
			Reference: imageName(spec.MetricsServer), Program: o.Programs[spec.MetricsServer], Entrypoint: []string{"/" + spec.MetricsServer},
		})
	}
	return images
}

// imageName of a program of the lab's.
func imageName(program string) string { return "skerry.local/" + program + ":lab" }
