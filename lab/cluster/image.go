package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"
)

// Images that are made of the lab's own programs; they come from no registry.
const (
	// AgentImage runs skerry-agent, whose role and flags are a container's args.
	AgentImage = "skerry.local/agent:lab"
	// pauseImage holds the namespaces of a pod: skerry-agent can do nothing, too.
	pauseImage   = "skerry.local/pause:lab"
	coreDNSImage = "skerry.local/coredns:lab"
)

// imageOf is one static program at the root of an image.
type imageOf struct {
	reference, program string
	entrypoint         []string
}

// nodeImages are those that every node has.
func nodeImages(o Options) []imageOf {
	return []imageOf{
		{AgentImage, o.Agent, []string{"/skerry-agent"}},
		{pauseImage, o.Agent, []string{"/skerry-agent", "hold"}},
	}
}

// headImages are those that a cluster's first node has besides: images are in memory,
// as all that nodes have of their own.
func headImages(o Options) []imageOf {
	return []imageOf{{coreDNSImage, o.Programs["coredns"], []string{"/coredns"}}}
}

// writeImages writes images as one archive, as docker save does, which containerd
// takes in. Those of one program share their layer.
func writeImages(path string, images []imageOf) error {
	layers := map[string]v1.Layer{}
	archive := map[name.Tag]v1.Image{}
	for _, i := range images {
		layer, err := layers[i.program], error(nil)
		if layer == nil {
			layer, err = layerOf(i.program)
			layers[i.program] = layer
		}
		if err != nil {
			return err
		}
		tag, err := name.NewTag(i.reference)
		if err == nil {
			archive[tag], err = i.image(layer)
		}
		if err != nil {
			return fmt.Errorf("make image %s: %w", i.reference, err)
		}
	}
	return tarball.MultiWriteToFile(path, archive)
}

func (i imageOf) image(layer v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	const nobody = "65534"
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config.Entrypoint, config.Config.User = i.entrypoint, nobody
	return mutate.ConfigFile(image, config)
}

// layerOf one program at the root.
func layerOf(path string) (v1.Layer, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if _, err := w.Write(program); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}

// LoadImages hands an archive of images, as docker save writes it, to every node.
func (c *Cluster) LoadImages(ctx context.Context, archive string) error {
	loading, ctx := errgroup.WithContext(ctx)
	for _, m := range c.members {
		loading.Go(func() error { return c.importImages(ctx, m, archive) })
	}
	return loading.Wait()
}
