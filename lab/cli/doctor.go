package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/systems"
)

// errUnfit says that the host lacks what every lab needs; doctor has told what.
var errUnfit = errors.New("this host cannot run a lab as it is")

func (c *commands) doctor() *cobra.Command {
	var clean, asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Show what this host has and lacks, each with its remedy",
		Long: `Doctor tries what a lab needs, for real, and looks for the programs that systems,
load tools and other verbs need. A line begins with

  ok       it is here
  without  it is not, and labs run without it; of a program it says what does not
  LACKS    it is not, and no lab runs without it: the exit status is 1`,
		Example: "  skerry doctor\n  skerry doctor --clean",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if clean {
				return cleanNow(cmd)
			}
			findings := slices.Concat(host.Probe(), probeSystems(), probePrograms())
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
		} else if lacks := p.Missing(); len(lacks) > 0 {
			f.Here, f.Detail, f.Remedy = false, "lacks "+programsOf(lacks), hint(errors.Join(lacks...))
		}
		findings = append(findings, f)
	}
	return findings
}

// programsOf names the programs that a system lacks.
func programsOf(lacks []error) string {
	var names []string
	for _, err := range lacks {
		if m, ok := errors.AsType[*system.MissingError](err); ok {
			names = append(names, m.Need.Program)
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
		return printJSON(cmd, findings)
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
