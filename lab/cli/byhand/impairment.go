package byhand

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/linkflag"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
)

// linkFlags are the flags that say what a link does.
type linkFlags struct {
	does   impair.Impairment
	then   linkflag.Stages
	unit   string
	oneWay bool
}

func (f *linkFlags) add(cmd *cobra.Command) {
	linkflag.Add(cmd, &f.does)
	flags := cmd.Flags()
	flags.Var(&f.then, "then", "a further stage behind, such as delay=5ms,loss=1%; repeat it for more")
	flags.StringVar(&f.unit, "unit", "", "what loss, jitter and rate fall on: packet (default) or superpacket")
	oneWayFlag(cmd, &f.oneWay)
}

func oneWayFlag(cmd *cobra.Command, oneWay *bool) {
	cmd.Flags().BoolVar(oneWay, "one-way", false, "FROM to TO alone")
}

// check refuses what cannot be emulated, before a lab is looked for.
func (f *linkFlags) check() error {
	stages := impair.Chain(f.does, f.then)
	err := stages.Check()
	if err == nil {
		err = recording.Fill(stages)
	}
	if err != nil {
		return wrongLink(err)
	}
	f.does, f.then = stages[0], linkflag.Stages(stages[1:])
	if !slices.Contains([]impair.Unit{"", impair.UnitPacket, impair.UnitSuperpacket}, impair.Unit(f.unit)) {
		return console.Usage(fmt.Errorf("unit %q is not known", f.unit), "write packet or superpacket")
	}
	return nil
}

// directions that the flags speak of, between two ends.
func (f *linkFlags) directions(lab *host.Lab, from, to string) ([]host.Link, error) {
	all, err := between(lab, from, to, f.oneWay)
	for i := range all {
		all[i].Unit, all[i].Does, all[i].Then = impair.Unit(f.unit), f.does, f.then
	}
	return all, err
}

// wrongLink keeps message and hint of an impairment apart.
func wrongLink(err error) error {
	if wrong, ok := errors.AsType[*impair.Error](err); ok {
		return console.Usage(errors.New(wrong.Message), wrong.Hint)
	}
	return console.Usage(err, "name uniform, normal, pareto or a file of delays")
}
