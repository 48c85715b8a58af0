// Package programs is the verbs for what Kubernetes clusters are made of, and the
// progress that builds of it show. Start at Command; kube lists what there is.
package programs

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cli/verb"
)

// Command is skerry kube.
func Command(env verb.Env, now func() time.Time) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kube", Short: "Build the programs of Kubernetes clusters, list them, or carry them to another machine",
		Long: `A lab on kubernetes runs the programs of real clusters, which Skerry builds from
their Go modules: once, some ten minutes of two cores, into a cache. A machine
without a compiler or a network gets them as a bundle.`,
		Args: console.KnownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	b := Builder(env, now)
	cmd.AddCommand(list(), build(b), bundle(b))
	return cmd
}

func list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the programs with their versions, and whether they are here",
		Example: "  skerry kube list",
		Args:    console.Exactly(0),
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

func build(b gobuild.Builder) *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Build the programs that are not here",
		Long: `Build makes the programs of clusters from their Go modules, with progress and the
time left. It needs Go, a C compiler and libseccomp's headers, and a network where
modules are not in Go's own cache; './setup kube' installs what Debian has of that.`,
		Example: "  skerry kube build",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			programs, err := b.Paths(cmd.Context(), nil)
			if err != nil {
				return err
			}
			cmd.Printf("%s are here; 'skerry kube list' shows where\n", console.Count(len(programs), "program"))
			return nil
		},
	}
}

func bundle(b gobuild.Builder) *cobra.Command {
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write the programs to a file, or take them from one",
		Args: console.KnownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "export FILE", Short: "Write the programs to a file, a tar archive compressed by zstd; build those that are not here",
		Example: "  skerry kube bundle export programs.tar.zst",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := console.CheckPlace(args[0]); err != nil {
				return err
			}
			return console.WriteFile(args[0], func(w io.Writer) error { return b.Export(cmd.Context(), w) })
		},
	}, &cobra.Command{
		Use: "import FILE", Short: "Take the programs from a file that export wrote: all of them or none",
		Example: "  skerry kube bundle import programs.tar.zst",
		Args:    console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return console.Usage(err, "name a file that 'skerry kube bundle export' wrote")
			}
			defer func() { _ = f.Close() }()
			if err := b.Import(f); err != nil {
				return err
			}
			cmd.Printf("%s are here; 'skerry kube list' shows where\n", console.Count(len(kube.Catalogue().Programs), "program"))
			return nil
		},
	})
	return cmd
}
