package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// ErrNone says that a lab has no Kubernetes cluster of a name.
var ErrNone = errors.New("no Kubernetes cluster of that name is up")

// recordFile is in a cluster's folder once it is up.
const recordFile = "cluster.json"

// record is what other processes need to know of a cluster that is up.
type record struct {
	Options Options `json:"options"`
	// Programs in the order in which they were started.
	Programs []program `json:"programs"`
}

// record keeps what the cluster is made of.
func (c *Cluster) record() error {
	r := record{Options: c.options}
	c.mu.Lock()
	for _, p := range c.programs {
		r.Programs = append(r.Programs, p.program)
	}
	c.mu.Unlock()
	c.recorded = r.Programs
	if err := whole.JSON(c.plane.file(recordFile), 0o600, r); err != nil {
		return fmt.Errorf("record the cluster: %w", err)
	}
	return nil
}

// Open finds a cluster of a lab that is up, whichever process has taken it up. That
// its programs have ended it cannot tell: Ended knows those that it starts itself.
func Open(lab *host.Lab, name string) (*Cluster, error) {
	none := fmt.Errorf("cluster %q of lab %s: %w", name, lab.Name, ErrNone)
	i := slices.IndexFunc(lab.Topology.Clusters, func(c topology.Cluster) bool { return c.Name == name })
	if i < 0 {
		return nil, none
	}
	var r record
	text, err := os.ReadFile(filepath.Join(dirOf(lab, name), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("open cluster %s: %w", name, err)
	}
	c := newCluster(lab, i, r.Options)
	c.recorded = r.Programs
	return c, c.connect()
}

// OpenAll finds the clusters of a lab, in its order; none where nodes are hosts.
func OpenAll(lab *host.Lab) ([]*Cluster, error) {
	var all []*Cluster
	for _, cluster := range lab.Topology.Clusters {
		c, err := Open(lab, cluster.Name)
		if errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
