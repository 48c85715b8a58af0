package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
)

// kube is the verbs for what Kubernetes clusters are made of.
func (c *commands) kube() *cobra.Command {
	cmd := &cobra.Command{
		Use: "kube", Short: "Build the programs of Kubernetes clusters, list them, or carry them to another machine",
		Long: `A lab on kubernetes runs the programs of real clusters, which Skerry builds from
their Go modules: once, some ten minutes of two cores, into a cache. A machine
without a compiler or a network gets them as a bundle.`,
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.kubeList(), c.kubeBuild(), c.kubeBundle())
	return cmd
}

func (c *commands) kubeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the programs with their versions, and whether they are here",
		Example: "  skerry kube list",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			catalogue := kube.Catalogue()
			b := gobuild.Builder{Catalogue: catalogue}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "PROGRAM\tVERSION\tMODULE\tHERE")
			for _, name := range catalogue.Names() {
				module, version, _ := catalogue.Version(name)
				path, here := b.Find(cmd.Context(), name)
				if !here {
					path = "no: 'skerry kube build' makes it"
				}
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, version, module, path)
			}
			return w.Flush()
		},
	}
}

func (c *commands) kubeBuild() *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Build the programs that are not here",
		Long: `Build makes the programs of clusters from their Go modules, with progress and the
time left. It needs Go, a C compiler and libseccomp's headers, and a network where
modules are not in Go's own cache; './setup kube' installs what Debian has of that.`,
		Example: "  skerry kube build",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			programs, err := c.kubeBuilder().Paths(cmd.Context(), nil)
			if err != nil {
				return err
			}
			cmd.Printf("%s are here; 'skerry kube list' shows where\n", count(len(programs), "program"))
			return nil
		},
	}
}

func (c *commands) kubeBundle() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write the programs to a file, or take them from one",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "export FILE", Short: "Write the programs to a file, a tar archive compressed by zstd; build those that are not here",
		Example: "  skerry kube bundle export programs.tar.zst",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPlace(args[0]); err != nil {
				return err
			}
			return writeFile(args[0], func(w io.Writer) error { return c.kubeBuilder().Export(cmd.Context(), w) })
		},
	}, &cobra.Command{
		Use: "import FILE", Short: "Take the programs from a file that export wrote: all of them or none",
		Example: "  skerry kube bundle import programs.tar.zst",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return usageError{err, "name a file that 'skerry kube bundle export' wrote"}
			}
			defer func() { _ = f.Close() }()
			if err := c.kubeBuilder().Import(f); err != nil {
				return err
			}
			cmd.Printf("%s are here; 'skerry kube list' shows where\n", count(len(kube.Catalogue().Programs), "program"))
			return nil
		},
	})
	return cmd
}

// kubernetes are the programs of the clusters of an experiment, if it has any. It
// refuses what this machine cannot carry before it builds what is not here.
func (c *commands) kubernetes(ctx context.Context, s source) (map[string]string, error) {
	if s.Substrate != experiment.SubstrateKubernetes {
		return nil, nil
	}
	clusters := s.Kubernetes.Spec()
	if err := preflight.Refuse(&s.Topology, clusters, c.now()); err != nil {
		return nil, err
	}
	return c.kubeBuilder().Paths(ctx, clusters.Needs)
}

// proxied refuses systems for which nobody takes requests: on Kubernetes a client calls
// a NodePort.
func (s source) proxied() error {
	if s.Kubernetes == nil || s.Kubernetes.Proxy != spec.ProxyNone {
		return nil
	}
	for _, name := range s.Systems {
		if !slices.ContainsFunc(s.stacks[name].Plugins, func(p *system.Plugin) bool { return p.Kind == system.KindBalancer }) {
			return usageError{
				fmt.Errorf("nobody takes requests for system %s: kubernetes.proxy is %s", name, spec.ProxyNone),
				"leave proxy out, or put a system of the kind " + system.KindBalancer + " into the stack; 'skerry up' takes such clusters up to work in by hand",
			}
		}
	}
	return nil
}

// kubeBuilder tells on stderr what it builds, how far that is and what time is left.
func (c *commands) kubeBuilder() gobuild.Builder {
	p := &building{w: c.env.Stderr, now: c.now, terminal: isTerminal(c.env.Stderr)}
	return gobuild.Builder{Catalogue: kube.Catalogue(), Tell: p.tell, Progress: p.progress}
}

// buildingPause lies between two lines of progress, where they are not written over.
const buildingPause = 15 * time.Second

// building shows how far a build is.
type building struct {
	w        io.Writer
	now      func() time.Time
	terminal bool
	program  string
	// began is when the program did, shown when its last line was.
	began, shown time.Time
}

func (p *building) tell(line string) { p.clear(); _, _ = fmt.Fprintln(p.w, line) }

// clear takes the line of progress away.
func (p *building) clear() {
	if p.terminal {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *building) progress(program string, done, total int) {
	now := p.now()
	if program != p.program {
		p.program, p.began, p.shown = program, now, now
	}
	text := fmt.Sprintf("%s: %d of %d packages%s", program, done, total, timeLeft(now.Sub(p.began), done, total))
	switch {
	case done == total:
		p.clear()
	case p.terminal:
		p.clear()
		_, _ = fmt.Fprint(p.w, text)
	case now.Sub(p.shown) >= buildingPause:
		p.shown = now
		_, _ = fmt.Fprintln(p.w, text)
	}
}

// timeLeft is ", 3m left" by what has been done; nothing where that says little.
func timeLeft(took time.Duration, done, total int) string {
	const telling = 20 // packages
	if done < telling {
		return ""
	}
	left := time.Duration(float64(took) * float64(total-done) / float64(done))
	return ", about " + left.Round(time.Second).String() + " left"
}
