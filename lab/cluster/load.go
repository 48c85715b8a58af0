package cluster

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// runtimeSocket is where a node's containerd answers, as the node sees it.
const runtimeSocket = "/run/containerd/containerd.sock"

// Errors of images that a caller tells apart.
var (
	ErrNotImages = errors.New("not an archive of images, as docker save writes it")
	ErrNoRoom    = errors.New("no room for the images: nodes keep them in memory")
)

// importImages hands an archive of images to a containerd as soon as it answers.
func (c *Cluster) importImages(ctx context.Context, m member, archive string) error {
	if err := c.awaitRuntime(ctx, m); err != nil {
		return err
	}
	// A node has folders of its own in the place of some of the machine's.
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var said bytes.Buffer
	err = c.lab.Run(ctx, host.Command{
		Node: m.Ref(), Name: fmt.Sprintf("%s-%d", m.process("ctr"), os.Getpid()), Stdin: file, Stderr: &said,
		Args: []string{c.options.Programs["ctr"], "--address", runtimeSocket, "--namespace", "k8s.io", "images", "import", "--local", "-"},
	})
	text := strings.TrimSpace(said.String())
	switch {
	case err == nil:
		return nil
	case strings.Contains(text, unix.ENOSPC.Error()):
		return fmt.Errorf("import images at node %s: %w", m, ErrNoRoom)
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return fmt.Errorf("import images at node %s: %w: %s", m, err, strings.TrimPrefix(last, "ctr: "))
}

// awaitRuntime waits until a node's containerd takes calls.
func (c *Cluster) awaitRuntime(ctx context.Context, m member) error {
	return c.await(ctx, "containerd of node "+m.String(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return c.lab.Within(m.Ref(), func() error {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", runtimeSocket)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	})
}

// manifestMax bounds what is read of an archive's list of images, in bytes.
const manifestMax = 4 << 20

// ImagesIn names the images of an archive: a tar file as docker save writes it or of
// an OCI layout, which gzip may have compressed. Those without a name it leaves out.
func ImagesIn(r io.Reader) ([]string, error) {
	buffered := bufio.NewReader(r)
	r = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, ErrNotImages
		}
		r = unzipped
	}
	var names []string
	found := false
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && found {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if err != nil {
			return nil, ErrNotImages
		}
		list := listOf(header.Name)
		if list == nil {
			continue
		}
		more, err := list(io.LimitReader(archive, manifestMax))
		if err != nil {
			return nil, ErrNotImages
		}
		names, found = append(names, more...), true
	}
}

// listOf gives the reader of an archive's file that lists images; nil for another.
func listOf(file string) func(io.Reader) ([]string, error) {
	switch file {
	case "manifest.json":
		return dockerList
	case "index.json":
		return ociList
	}
	return nil
}

func dockerList(r io.Reader) (names []string, err error) {
	var images []struct{ RepoTags []string }
	err = json.NewDecoder(r).Decode(&images)
	for _, i := range images {
		names = append(names, i.RepoTags...)
	}
	return names, err
}

func ociList(r io.Reader) (names []string, err error) {
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	err = json.NewDecoder(r).Decode(&index)
	for _, m := range index.Manifests {
		if name := m.Annotations["io.containerd.image.name"]; name != "" {
			names = append(names, name)
		}
	}
	return names, err
}

// checkRoom refuses an archive that fills the machine's memory: each of some nodes
// keeps it as it came and once more unpacked.
func checkRoom(size uint64, nodes int, meminfo string) error {
	const copies, mega = 2, 1e6
	free, err := available(meminfo)
	if need := copies * size * uint64(nodes); err == nil && need > free {
		return fmt.Errorf("%w: %d nodes need %.0f MB, and %.0f MB are free", ErrNoRoom, nodes, float64(need)/mega, float64(free)/mega)
	}
	return err
}

// loadTimeout bounds how long nodes may take to take images in.
const loadTimeout = 5 * time.Minute

// Load hands an archive of images to every node of some clusters, if it is one and
// there is room, and names the images.
func Load(ctx context.Context, clusters []*Cluster, archive string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	names, err := ImagesIn(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	nodes := 0
	for _, c := range clusters {
		nodes += len(c.members)
	}
	if err := checkRoom(uint64(info.Size()), nodes, string(meminfo)); err != nil {
		return nil, err
	}
	for _, c := range clusters {
		if err := c.LoadImages(ctx, archive); err != nil {
			return nil, err
		}
	}
	return names, nil
}
