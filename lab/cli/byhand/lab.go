package byhand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/cli/programs"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/topology"
)

func (c *commands) up() *cobra.Command {
	var name, backend string
	cmd := &cobra.Command{
		Use: "up FILE", Short: "Take the topology of an experiment file up as a lab to work in by hand",
		Long: `Up makes the nodes of the file's topology and, with substrate: kubernetes, its
clusters. That is all: links do nothing until 'skerry link set' says what, and nothing
of the file is served or measured, which 'skerry run' does. The lab stays until
'skerry down' removes it, also after you log out.

Programs of Kubernetes that are not here are built first: once, some ten minutes.`,
		Example: "  skerry up experiments/quickstart.yaml\n  skerry up experiments/kubernetes.yaml --name demo",
		Args:    console.Exactly(1),
	}
	dir := source.SystemsFlag(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the lab (default: the experiment's)")
	cmd.Flags().StringVar(&backend, "links", emulator.Auto, "link back end: auto, netem or userspace")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := source.Read(args[0], *dir)
		if err != nil {
			return err
		}
		path, err := verb.Agent()
		if err != nil {
			return err
		}
		if name == "" {
			name = s.Name
		}
		if err := verb.CheckBackend(backend); err != nil {
			return err
		}
		switch _, err := host.Open(name); { // known before anything is built
		case err == nil:
			return fmt.Errorf("lab %s: %w", name, host.ErrExists)
		case errors.Is(err, host.ErrName):
			return err
		}
		kubernetes, err := s.ClusterPrograms(cmd.Context(), programs.Builder(c.env, c.now), c.now())
		if err != nil {
			return err
		}
		began := c.now()
		// Until all of it is up the lab ends with this process.
		lab, err := host.Up(cmd.Context(), s.Topology, host.Options{Name: name, Agent: path, Backend: backend, Bound: true})
		if err != nil {
			return err
		}
		if kubernetes != nil {
			var clusters []*cluster.Cluster
			clusters, err = cluster.Up(cmd.Context(), lab, cluster.Options{
				Programs: kubernetes, Agent: path, Spec: s.Kubernetes.Spec(), Now: began,
				Logs: filepath.Join(os.TempDir(), "skerry-"+lab.Name+"-logs"),
			})
			if err == nil {
				err = cluster.AwaitMetrics(cmd.Context(), clusters)
			}
		}
		if err == nil {
			err = lab.Release(cmd.Context())
		}
		if err != nil {
			return errors.Join(err, lab.Down())
		}
		first := s.Topology.Nodes()[0]
		cmd.Printf("lab %s is up: %d nodes in %s\n", lab.Name, len(lab.Nodes), c.now().Sub(began).Round(time.Millisecond))
		cmd.PrintErrf("next: skerry exec %s %s -- ip address\n", lab.Name, first)
		return nil
	}
	return cmd
}

// labRow is a lab as ps tells it.
type labRow struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Nodes []nodeRow `json:"nodes"`
	// Links in force: as they were set, but for what a fault covers.
	Links []host.Link `json:"links"`
	// Processes in the nodes.
	Processes []host.Running `json:"processes"`
	// Pods of its Kubernetes clusters.
	Pods   []podRow     `json:"pods,omitempty"`
	Faults []host.Fault `json:"faults"`
	// Counters by direction, FROM>TO.
	Counters map[string]impair.Counters `json:"counters"`
	Backend  string                     `json:"backend"`
}

type nodeRow struct {
	Node string `json:"node"`
	Data string `json:"data"`
	// Data6 is its address of IPv6, in a dual lab.
	Data6 string `json:"data6,omitempty"`
	Mgmt  string `json:"mgmt"`
	Pid   int    `json:"pid"`
	// Kubernetes says what its API server knows of the node: Ready, or why not.
	Kubernetes string `json:"kubernetes,omitempty"`
}

func (c *commands) ps() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ps", Short: "List the labs that are up, with their nodes, links, processes and pods",
		Long: `Ps lists the labs that are up. Of Kubernetes clusters it tells which nodes are Ready,
as their API server knows, and of each pod the CPU time that it has used since it began
and the memory that it holds now, as the kernel accounts them. A process or container
has the name by which 'skerry fault' takes it.`,
		Example: "  skerry ps\n  skerry ps --json",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := listLabs(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(cmd, rows)
			}
			return printLabs(cmd, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func listLabs(cmd *cobra.Command) ([]labRow, error) {
	names, err := host.Names()
	if err != nil {
		return nil, err
	}
	rows := []labRow{}
	for _, name := range names {
		row, err := lookAt(cmd.Context(), name)
		if err != nil {
			if cmd.Context().Err() != nil {
				return nil, err
			}
			// What was seen may be of a lab on its way down, or up.
			switch _, now := host.Open(name); {
			case errors.Is(now, host.ErrNoLab):
				continue
			case now != nil && !errors.Is(now, host.ErrState):
				return nil, now
			}
			row.State = "broken: " + err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// lookAt tells what there is of a lab; after an error, what was seen until then.
func lookAt(ctx context.Context, name string) (labRow, error) {
	row := labRow{Name: name, State: "up", Nodes: []nodeRow{}}
	lab, err := host.Open(name)
	if err != nil {
		return row, err
	}
	row.Links, row.Faults = lab.LinksInForce(), lab.Faults
	for _, n := range lab.Topology.Nodes() {
		at := nodeRow{Node: n.String(), Data: n.Data.Addr().String(), Mgmt: n.Mgmt.Addr().String(), Pid: lab.Nodes[n.Ref()].Pid}
		if n.Data6.IsValid() {
			at.Data6 = n.Data6.Addr().String()
		}
		row.Nodes = append(row.Nodes, at)
	}
	if err := lab.Check(ctx); err != nil {
		return row, err
	}
	if status, err := lab.LinkStatus(ctx); err == nil {
		row.Counters, row.Backend = status.Counters, status.Backend
		if row.Processes, err = lab.Running(); err != nil {
			return row, err
		}
	}
	return row, row.lookInto(ctx, lab)
}

func printLabs(cmd *cobra.Command, rows []labRow) error {
	if len(rows) == 0 {
		cmd.PrintErrln("no lab is up; 'skerry up FILE' makes one")
		return nil
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "LAB %s\t%s\tlinks by %s\n", r.Name, r.State, console.Dash(r.Backend))
		for _, n := range r.Nodes {
			_, _ = fmt.Fprintf(w, "  node %s\tdata %s%s\tmgmt %s\tpid %d%s\n", n.Node, n.Data, after(" ", n.Data6), n.Mgmt, n.Pid, after(", ", n.Kubernetes))
		}
		for _, p := range r.Pods {
			_, _ = fmt.Fprint(w, p.cells())
		}
		for _, p := range r.Processes {
			_, _ = fmt.Fprintf(w, "  process %s:%s\t%s\t\t%s\n", p.Node, p.Name, strings.Join(p.Programs, ", "), console.Count(len(p.Pids), "pid"))
		}
		for _, l := range r.Links {
			c := r.Counters[l.Name()]
			_, _ = fmt.Fprintf(w, "  link %s > %s\t%s\t%d packets\t%d lost, %d overflowed, %d late\n",
				l.From, l.To, l.Stages(), c.Packets, c.Lost, c.Overflowed, c.Late)
		}
		for _, f := range r.Faults {
			_, _ = fmt.Fprintf(w, "  fault %d\t%s\t%s\t\n", f.ID, f.Kind, f.Target())
		}
	}
	return w.Flush()
}

func (c *commands) exec() *cobra.Command {
	return &cobra.Command{
		Use: "exec LAB NODE|POD -- COMMAND [ARG...]", Short: "Run a command in a node, or in the network of a pod",
		Long: `Exec runs a program of this machine in a node: with its networks and its host name;
in one of a Kubernetes cluster also with the node's own /run, /var/lib and /var/log.
NODE is CLUSTER/NODE, or a host name.

POD is CLUSTER/NAMESPACE/POD, or a workload with one pod in the place of POD. The
program is the machine's all the same, in the pod's network, with its host name and
its resolv.conf: so it helps where an image has no shell. 'kubectl exec' runs what is
in an image.`,
		Example: "  skerry exec quickstart c2/worker -- ping -c 3 c1-worker\n  skerry exec demo c1/kube-system/coredns -- ss -lntup",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return console.WantsArgs(cmd, len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inNode(cmd, args[0], args[1], args[2:])
		},
	}
}

func (c *commands) shell() *cobra.Command {
	return &cobra.Command{
		Use: "shell LAB NODE|POD", Short: "Open a shell in a node, or in the network of a pod",
		Long: `Shell is 'skerry exec' of the shell that $SHELL names, or of /bin/sh: it leaves the
node when you do.`,
		Example: "  skerry shell quickstart c2/worker",
		Args:    console.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			shell := os.Getenv("SHELL")
			if shell == "" {
				shell = "/bin/sh"
			}
			return c.inNode(cmd, args[0], args[1], []string{shell})
		},
	}
}

// inLab is a verb that does something in the lab that its first argument names, which
// is up.
func inLab(do func(cmd *cobra.Command, lab *host.Lab, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		lab, err := host.Open(args[0])
		if err != nil {
			return err
		}
		return do(cmd, lab, args[1:])
	}
}

// inNode runs a command in the foreground, with the exit status of the command.
func (c *commands) inNode(cmd *cobra.Command, name, node string, args []string) error {
	lab, err := host.Open(name)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	command := host.Command{
		Name: fmt.Sprintf("exec-%d", os.Getpid()), Args: args, Foreground: true, Dir: here,
		Stdin: c.env.Stdin, Stdout: c.env.Stdout, Stderr: c.env.Stderr,
	}
	if namesPod(node) {
		err = inPod(cmd.Context(), lab, node, command)
	} else if command.Node, err = nodeOf(lab, node); err == nil {
		err = lab.Run(cmd.Context(), command)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return console.StatusError{Status: shellStatus(exit.ProcessState)}
	}
	if errors.Is(err, exec.ErrNotFound) {
		return console.Usage(fmt.Errorf("no program %q on this machine", args[0]), "a node has the machine's own programs: install it, or give its path")
	}
	return err
}

// shellStatus is a program's exit status as shells tell it: 128 and the signal
// for one that a signal ended.
func shellStatus(s *os.ProcessState) int {
	const signalled = 128
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return s.ExitCode()
}

// nodeOf finds a node by CLUSTER/NODE or by its host name.
func nodeOf(lab *host.Lab, name string) (topology.Ref, error) {
	var names []string
	for _, n := range lab.Topology.Nodes() {
		if n.String() == name || n.Host() == name {
			return n.Ref(), nil
		}
		names = append(names, n.String())
	}
	return "", console.Usage(fmt.Errorf("no node %q in lab %s", name, lab.Name), nearest.Hint(name, names))
}

func (c *commands) down() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "down LAB | --all", Short: "Remove a lab and all that runs in it",
		Long: `Down ends every process of a lab, and with them its nodes, clusters and links. What
nodes of Kubernetes clusters keep of their own, such as images and volumes, goes, too.
A lab of which parts have ended is taken down like any other.`,
		Example: "  skerry down quickstart\n  skerry down --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) || len(args) > 1 {
				return console.Usage(errors.New("skerry down takes one lab or --all"), "'skerry ps' lists the labs")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			names := args
			if all {
				var err error
				if names, err = host.Names(); err != nil {
					return err
				}
			}
			var problems error
			for _, name := range names {
				problems = errors.Join(problems, c.downOne(cmd, name))
			}
			return problems
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every lab")
	return cmd
}

func (c *commands) downOne(cmd *cobra.Command, name string) error {
	began := c.now()
	lab, err := host.Open(name)
	if err != nil {
		return err
	}
	if err := lab.Down(); err != nil {
		return err
	}
	cmd.Printf("lab %s is down in %s\n", name, c.now().Sub(began).Round(time.Millisecond))
	return nil
}

// after puts a text behind another, where there is one.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
