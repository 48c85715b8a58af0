package byhand

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
)

// kubeconfig prints what other programs call a cluster of a lab by.
func (c *commands) kubeconfig() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "kubeconfig LAB [CLUSTER]", Short: "Print the kubeconfig of a lab's cluster, for kubectl and others on this machine",
		Long: `Kubeconfig prints how a client of Kubernetes on this machine calls a cluster of a
lab: at a port of loopback, which leads to the API server by the lab's own network.
Without CLUSTER it is the first. What it prints has the key of the cluster's
administrator: --out writes it to a file that is the user's alone.`,
		Example: "  skerry kubeconfig demo c1 --out c1.yaml\n  kubectl --kubeconfig c1.yaml get pods -A",
		Args:    console.Within(1, 2),
		PreRunE: func(*cobra.Command, []string) error { return console.CheckPlace(out) },
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			name := append(args, clusterNames(lab)[0])[0]
			text, err := os.ReadFile(cluster.Kubeconfig(lab, name))
			if errors.Is(err, fs.ErrNotExist) {
				return noCluster(lab, name)
			}
			if err != nil {
				return err
			}
			if out != "" {
				return whole.Write(out, 0o600, func(w io.Writer) error { _, err := w.Write(text); return err })
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write it to, in place of stdout")
	return cmd
}

// kubeconfigHint says which clusters there are, or that the lab is not of that kind.
func kubeconfigHint(lab *host.Lab, name string, names []string) string {
	if _, err := os.Stat(cluster.Kubeconfig(lab, names[0])); err != nil {
		return "its nodes are hosts: 'skerry up' of a file with substrate: kubernetes makes clusters"
	}
	return nearest.Hint(name, names)
}
