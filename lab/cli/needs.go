package cli

import (
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
)

// lacks are what this machine has not of the programs that the experiment's
// systems, workloads and load tools need, each once.
func (s source) lacks() []error {
	var all []error
	said := map[string]bool{}
	add := func(errs ...error) {
		for _, err := range errs {
			if err != nil && !said[err.Error()] {
				said[err.Error()] = true
				all = append(all, err)
			}
		}
	}
	for _, name := range s.Systems {
		add(s.stacks[name].Missing()...)
	}
	for _, w := range s.Workloads {
		if broker.Protocol(w.Name) != "" {
			add(broker.Missing(w.Name))
		}
	}
	for _, tool := range s.Load.Tool {
		add(program.Missing(tool))
	}
	return all
}

// printLacks prints what is missing, and what brings it; nothing where nothing is.
func printLacks(cmd *cobra.Command, lacks []error) error {
	if len(lacks) == 0 {
		return nil
	}
	cmd.Println()
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MISSING HERE\tREMEDY")
	for _, lack := range lacks {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", lack, dash(hint(lack)))
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
		f.Remedy = installGo
	}
	return f
}
