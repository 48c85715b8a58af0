package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/image"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/host"
)

// runtimeSocket is where a node's containerd answers, as the node sees it.
const runtimeSocket = "/run/containerd/containerd.sock"

// ErrNoRoom is of images for which the machine has too little memory.
var ErrNoRoom = errors.New("no room for the images: nodes keep them in memory")

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
		Args: []string{c.options.Programs["ctr"], "--address", runtimeSocket, "--namespace", "k8s.io", "images", "import", "--local", "--discard-unpacked-layers", "-"},
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

// checkRoom refuses an archive that fills the machine's memory: each of some nodes
// keeps it as it came and once more unpacked.
func checkRoom(size uint64, nodes int, free uint64) error {
	const copies, mega = 2, 1e6
	if need := copies * size * uint64(nodes); need > free {
		return fmt.Errorf("%w: %d nodes need %.0f MB, and %.0f MB are free", ErrNoRoom, nodes, float64(need)/mega, float64(free)/mega)
	}
	return nil
}

// LoadImages hands an archive of images, as docker save writes it, to every node.
func (c *Cluster) LoadImages(ctx context.Context, archive string) error {
	loading, ctx := errgroup.WithContext(ctx)
	for _, m := range c.members {
		loading.Go(func() error { return c.importImages(ctx, m, archive) })
	}
	return loading.Wait()
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
	names, err := image.NamesIn(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	free, err := preflight.FreeMemory()
	if err != nil {
		return nil, err
	}
	nodes := 0
	for _, c := range clusters {
		nodes += len(c.members)
	}
	if err := checkRoom(uint64(info.Size()), nodes, free); err != nil {
		return nil, err
	}
	for _, c := range clusters {
		if err := c.LoadImages(ctx, archive); err != nil {
			return nil, err
		}
	}
	return names, nil
}
