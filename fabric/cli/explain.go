package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/source/file"
	"skerry.dev/skerry/internal/console"
)

// explained is a decision of one end, as JSON shows it.
type explainedEnd struct {
	Resources string   `json:"resources"`
	Allowed   bool     `json:"allowed"`
	Policy    string   `json:"policy,omitempty"`
	Near      []string `json:"near,omitempty"`
}

func explainCommand() *cobra.Command {
	var from, to map[string]string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain DIR... --from KEY=VALUE,… --to KEY=VALUE,…",
		Short: "Say who may call what, and by which policy",
		Long: `Explain decides as gateways do, by the files in each folder: those of the importer's
gateway and those of the exporter's, both of which must allow a connection. For each it
names the policy that decides, and those before it that miss one requirement.

Attributes of --from are cluster, gateway, workload, namespace, serviceaccount and
label/KEY, those of --to cluster, namespace, service, port and protocol.`,
		Example: "  skerry fabric explain c2-resources c1-resources --from cluster=c2 --to cluster=c1,namespace=shop,service=web",
		Args:    console.Some(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ends []explainedEnd
			for _, folder := range args {
				s, err := file.Read(folder)
				if err != nil {
					return console.Usage(err, "")
				}
				d, near := policy.Compile(s.Policies).Explain(from, to)
				end := explainedEnd{Resources: folder, Allowed: d.Allowed}
				if d.Policy != nil {
					end.Policy = d.Policy.Name
				}
				for _, n := range near {
					end.Near = append(end.Near, nearLine(n))
				}
				ends = append(ends, end)
				if asJSON {
					continue
				}
				if err := done(cmd, "%s: %s%s", folder, d, strings.Join(append([]string{""}, end.Near...), "\n  ")); err != nil {
					return err
				}
			}
			if asJSON {
				return console.PrintJSON(cmd, ends)
			}
			return nil
		},
	}
	c.Flags().StringToStringVar(&from, "from", nil, "attributes of who calls")
	c.Flags().StringToStringVar(&to, "to", nil, "attributes of what is called")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	console.WithoutDefault(c, "from", "to")
	console.Require(c, "from", "to")
	return c
}

// nearLine says what a policy would have done, and why it did not.
func nearLine(n policy.Near) string {
	does := "would allow it"
	if n.Policy.Deny {
		does = "would deny it"
	}
	return fmt.Sprintf("%s %s: %s", n.Policy.Name, does, n.Unmet)
}
