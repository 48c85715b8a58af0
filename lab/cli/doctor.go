package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
	"skerry.dev/skerry/systems"
)

// errUnfit says that the host lacks what every lab needs; doctor has told what.
var errUnfit = errors.New("this host cannot run a lab as it is")

func doctor(now func() time.Time) *cobra.Command {
	var clean, asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Show what this host has and lacks, each with its remedy",
		Long: `Doctor tries what a lab needs, for real, also what Kubernetes clusters need of the
kernel, and looks for their programs and for those that systems, load tools and other
verbs need. It starts no lab. A line begins with

  ok       it is here
  without  it is not, and labs run without it; of a program it says what does not
  LACKS    it is not, and no lab runs without it: the exit status is 1`,
		Example: "  skerry doctor\n  skerry doctor --clean",
		Args:    console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if clean {
				return cleanNow(cmd)
			}
			findings := slices.Concat(host.Probe(), preflight.Survey(now()), probeBuilt(cmd.Context()), probeSystems(), probePrograms())
			if err := printFindings(cmd, findings, asJSON); err != nil {
				return err
			}
			for _, f := range findings {
				if f.Needed && !f.Here {
					return errUnfit
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&clean, "clean", false, "remove what a killed lab left")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func cleanNow(cmd *cobra.Command) error {
	removed, err := host.Clean(cmd.Context())
	for _, name := range removed {
		cmd.Printf("removed lab %s\n", name)
	}
	if len(removed) == 0 && err == nil {
		cmd.PrintErrln("nothing to clean")
	}
	return err
}

// probeBuilt says whether the programs of clusters are here.
func probeBuilt(ctx context.Context) []host.Finding {
	catalogue := kube.Catalogue()
	lacking := gobuild.Builder{Catalogue: catalogue}.Lacking(ctx)
	f := host.Finding{What: "kubernetes: programs", Here: len(lacking) == 0, Detail: fmt.Sprintf("all %d are built", len(catalogue.Programs))}
	if !f.Here {
		f.Detail = fmt.Sprintf("%d of %d are not built: %s", len(lacking), len(catalogue.Programs), strings.Join(lacking, ", "))
		f.Remedy = "'skerry kube build' builds them, 'skerry kube bundle import FILE' takes them from another machine; a lab that wants one builds it"
	}
	return []host.Finding{f}
}

func probeSystems() []host.Finding {
	names, err := system.Names(systems.FS)
	if err != nil {
		return []host.Finding{{What: "systems", Detail: err.Error()}}
	}
	var findings []host.Finding
	for _, name := range names {
		f := host.Finding{What: "system " + name, Here: true, Detail: "needs nothing that is not here"}
		p, err := system.LoadPlugin(systems.FS, name)
		if err != nil {
			f.Here, f.Detail = false, err.Error()
		} else if lacks := errors.Join(append(p.Missing(), p.KernelLacks())...); lacks != nil {
			f.Here, f.Detail, f.Remedy = false, "lacks "+namesOf(lacks), verb.Hint(lacks)
		}
		findings = append(findings, f)
	}
	return findings
}

// namesOf names the programs and queueing disciplines that a system lacks, of errors that are
// joined.
func namesOf(lacks error) string {
	var names []string
	for _, err := range lacks.(interface{ Unwrap() []error }).Unwrap() {
		if m, ok := errors.AsType[*system.MissingError](err); ok {
			names = append(names, m.Need.Program)
		}
		if q, ok := errors.AsType[*system.QdiscError](err); ok {
			names = append(names, q.Qdiscs...)
		}
	}
	return strings.Join(names, ", ")
}

// probePrograms looks for the programs that some experiments need, and some verbs.
func probePrograms() []host.Finding {
	programs, err := optionals(systems.FS)
	if err != nil {
		return []host.Finding{{What: "programs", Detail: err.Error()}}
	}
	var findings []host.Finding
	for _, p := range programs {
		findings = append(findings, p.finding())
	}
	return findings
}

func printFindings(cmd *cobra.Command, findings []host.Finding, asJSON bool) error {
	if asJSON {
		return console.PrintJSON(cmd, findings)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, f := range findings {
		state := "ok"
		switch {
		case !f.Here && f.Needed:
			state = "LACKS"
		case !f.Here:
			state = "without"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", state, f.What, f.Detail)
		if f.Remedy != "" {
			_, _ = fmt.Fprintf(w, "\t\tremedy: %s\n", f.Remedy)
		}
	}
	return w.Flush()
}

// optional is a program that some things need, and most labs do not.
type optional struct {
	name string
	// debian is the package that has it, empty for go.
	debian string
	uses   []string
}

// optionals are those that Skerry knows of, in the order of their uses: systems,
// workloads, load tools, all else.
func optionals(tree fs.FS) ([]optional, error) {
	names, err := system.Names(tree)
	if err != nil {
		return nil, err
	}
	var all []optional
	add := func(name, debian, use string) {
		i := slices.IndexFunc(all, func(o optional) bool { return o.name == name })
		if i < 0 {
			i, all = len(all), append(all, optional{name: name, debian: debian})
		}
		if !slices.Contains(all[i].uses, use) {
			all[i].uses = append(all[i].uses, use)
		}
	}
	for _, name := range names {
		p, err := system.LoadPlugin(tree, name)
		if err != nil {
			return nil, err
		}
		for _, need := range p.Needs {
			if need.Own { // built with this program
				continue
			}
			if need.Module {
				need.Program, need.Package = "go", ""
			}
			add(need.Program, need.Package, "system "+name)
		}
	}
	for _, name := range broker.Names() {
		need := broker.Needs(name)
		add(need.Program, need.Package, "workload "+name)
	}
	for _, tool := range experiment.Tools() {
		for _, need := range program.Needs(tool) {
			add(need.Program, need.Package, "load tool "+tool)
		}
	}
	add("tcpdump", "tcpdump", "capture --filter")
	add("qemu-system-x86_64", "qemu-system-x86", "tests on a kernel of Debian's")
	return all, nil
}

// finding says whether the program is here.
func (o optional) finding() host.Finding {
	f := host.Finding{What: "program " + o.name, Here: true, Detail: "for " + strings.Join(o.uses, ", ")}
	if _, err := exec.LookPath(o.name); err == nil {
		return f
	}
	f.Here, f.Remedy = false, "apt-get install "+o.debian
	if o.debian == "" {
		f.Remedy = verb.InstallGo
	}
	return f
}
