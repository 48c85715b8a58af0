package byhand

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/image"
	"skerry.dev/skerry/lab/host"
)

func (c *commands) loadImage() *cobra.Command {
	return &cobra.Command{
		Use: "load-image LAB FILE [CLUSTER]", Short: "Load images from an archive into every node of a lab's clusters",
		Long: `Load-image hands the images of an archive, as docker save writes it or of an OCI
layout in a tar file, to every node of the lab's Kubernetes clusters, or of one. Pods
then use them with imagePullPolicy IfNotPresent or Never: there is no registry to ask,
and for a tag latest the policy is Always unless the pod says otherwise.

Nodes keep images in memory, as it came and once more unpacked: one that has no room is
refused. They stay through a reboot, until the lab goes down.`,
		Example: "  docker save web:1 -o web.tar\n  skerry load-image demo web.tar\n  skerry load-image demo web.tar c1",
		Args:    console.Within(2, 3),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			clusters, err := clustersOf(lab, args[1:])
			if err != nil {
				return err
			}
			names, err := cluster.Load(cmd.Context(), clusters, args[0])
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, image.ErrFormat) {
				return console.Usage(err, "name a tar file: 'docker save IMAGE -o FILE' writes one")
			}
			if err != nil {
				return err
			}
			what := strings.Join(names, ", ")
			if what == "" {
				what = "the images of " + args[0]
			}
			cmd.Printf("loaded %s into %s of lab %s\n", what, console.Count(len(clusters), "cluster"), lab.Name)
			return nil
		}),
	}
}

// clustersOf are the Kubernetes clusters of a lab that are named, or all.
func clustersOf(lab *host.Lab, names []string) ([]*cluster.Cluster, error) {
	if len(names) == 0 {
		all, err := cluster.OpenAll(lab)
		if err == nil && len(all) == 0 {
			err = console.Usage(fmt.Errorf("lab %s has no Kubernetes clusters", lab.Name), kubeconfigHint(lab, "", clusterNames(lab)))
		}
		return all, err
	}
	one, err := openCluster(lab, names[0])
	return []*cluster.Cluster{one}, err
}
