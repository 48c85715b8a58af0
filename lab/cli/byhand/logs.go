package byhand

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
)

func (c *commands) logs() *cobra.Command {
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use: "logs LAB [TARGET]", Short: "Print what programs of a lab and pods in it have said, or list whose there is",
		Long: `Logs prints what a program or a container has said, from its start; of a container
that was started again, that before, too. It reads the files where they were written:
a control plane that does not answer is in the way of none.

TARGET is links, the emulator's; CLUSTER/NODE:PROGRAM, such as c1/head:kube-apiserver;
or CLUSTER/NAMESPACE/POD, with :CONTAINER where a pod has several. The beginning of a
pod's name is enough where no other begins so. Without TARGET logs lists what there is.

What systems and workloads on hosts say is in the run directory.`,
		Example: "  skerry logs demo\n  skerry logs demo c1/worker:kubelet --follow\n  skerry logs demo c1/kube-system/coredns",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return console.WantsArgs(cmd, len(args))
			}
			if asJSON && len(args) == 2 || follow && len(args) == 1 {
				return console.Usage(errors.New("--follow is for a TARGET, and --json for the list of them"), console.SeeHelp(cmd))
			}
			return nil
		},
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			logs, err := cluster.Logs(lab)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return printLogs(cmd, logs, asJSON)
			}
			log, err := logOf(lab, logs, args[0])
			if err != nil {
				return err
			}
			return log.Copy(cmd.Context(), cmd.OutOrStdout(), follow)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is said from now on, until Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func printLogs(cmd *cobra.Command, logs []cluster.Log, asJSON bool) error {
	if asJSON {
		return console.PrintJSON(cmd, logs)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TARGET\tBYTES")
	for _, l := range logs {
		_, _ = fmt.Fprintf(w, "%s\t%d\n", l.Target, l.Bytes)
	}
	return w.Flush()
}

// logOf finds a log by its target, that of a pod also by the beginning of its name.
func logOf(lab *host.Lab, logs []cluster.Log, target string) (cluster.Log, error) {
	var known []string
	for _, l := range slices.Backward(logs) { // of pods of one name the later
		if l.Target == target {
			return l, nil
		}
		known = append(known, l.Target)
	}
	slices.Sort(known)
	var found []cluster.Log
	for _, l := range logs {
		if namesPod(target) && strings.HasPrefix(l.Target, target) {
			found = append(found, l)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		known = nil
		for _, l := range found {
			known = append(known, l.Target)
		}
		return cluster.Log{}, console.Usage(fmt.Errorf("%q has %s in lab %s", target, console.Count(len(found), "log"), lab.Name), "name one: "+strings.Join(known, ", "))
	}
	return cluster.Log{}, console.Usage(fmt.Errorf("no log of %q in lab %s", target, lab.Name), nearest.Hint(target, known))
}
