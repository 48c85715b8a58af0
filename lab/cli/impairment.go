package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
)

// linkFlags are the flags that say what a link does.
type linkFlags struct {
	does   impair.Impairment
	then   stagesFlag
	unit   string
	oneWay bool
}

func (f *linkFlags) add(cmd *cobra.Command) {
	impairmentFlags(cmd, &f.does)
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
	f.does, f.then = stages[0], stagesFlag(stages[1:])
	if !slices.Contains([]impair.Unit{"", impair.UnitPacket, impair.UnitSuperpacket}, impair.Unit(f.unit)) {
		return usageError{fmt.Errorf("unit %q is not known", f.unit), "write packet or superpacket"}
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

// impairmentFlags defines a flag for each thing that a link can do to packets;
// their names are the keys of an experiment file.
func impairmentFlags(cmd *cobra.Command, does *impair.Impairment) {
	flags := cmd.Flags()
	flags.Var(&does.Delay, "delay", "delay of every packet, such as 5ms")
	flags.Var(&does.Jitter, "jitter", "variation of the delay")
	flags.Var(distributionFlag{&does.Distribution}, "distribution", "of the jitter: uniform (default), normal, pareto, or a file of measured delays")
	flags.BoolVar(&does.Unordered, "unordered", false, "let jitter change the order of packets")
	flags.Var(&does.Reorder, "reorder", "probability that a packet skips the delay and overtakes, such as 1%")
	flags.Var(&does.Loss, "loss", "probability that a packet is lost, such as 0.1%")
	flags.Var(burstFlag{&does.Burst}, "burst", "bursts of loss: probability that a packet begins one, ends it, is lost in it (100%)")
	flags.Var(&does.Duplicate, "duplicate", "probability that a packet arrives twice")
	flags.Var(&does.Corrupt, "corrupt", "probability that a bit of a packet is flipped")
	flags.Var(&does.Rate, "rate", "rate in Ethernet frames, such as 100mbit")
	flags.Var(&does.Queue, "queue", "bytes that may wait for the rate, such as 256KB")
	flags.Var(traceFlag{&does.Trace}, "trace", "replay lte, 5g or a file in place of a rate")
	withoutDefault(cmd, stageKeys()...)
}

// withoutDefault leaves "(default 0s)" and its like out of the help: a flag that is
// not given does nothing.
func withoutDefault(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		cmd.Flags().Lookup(name).DefValue = ""
	}
}

// wrongLink keeps message and hint of an impairment apart.
func wrongLink(err error) error {
	if wrong, ok := errors.AsType[*impair.Error](err); ok {
		return usageError{errors.New(wrong.Message), wrong.Hint}
	}
	return usageError{err, "name uniform, normal, pareto or a file of delays"}
}

// burstFlag reads "1%,25%" or "1%,25%,90%".
type burstFlag struct{ *impair.Burst }

// Set implements pflag.Value.
func (f burstFlag) Set(text string) error {
	const least, most = 2, 3
	parts := strings.Split(text, ",")
	if len(parts) < least || len(parts) > most {
		return fmt.Errorf("%q is no burst; write for example 1%%,25%% or 1%%,25%%,90%%", text)
	}
	var read [most]quantity.Fraction
	for i, part := range parts {
		if err := read[i].Set(part); err != nil {
			return err
		}
	}
	if len(parts) == most && read[2] == 0 {
		return errors.New("a burst with loss 0% loses nothing; leave the loss out, and all are lost in it")
	}
	*f.Burst = impair.Burst{Enter: read[0], Leave: read[1], Loss: read[2]}
	return nil
}

// String implements pflag.Value; it prints what Set would read.
func (f burstFlag) String() string {
	if f.Burst == nil || *f.Burst == (impair.Burst{}) {
		return ""
	}
	text := f.Enter.String() + "," + f.Leave.String()
	if f.Loss != 0 {
		text += "," + f.Loss.String()
	}
	return text
}

// Type implements pflag.Value.
func (f burstFlag) Type() string { return "ENTER,LEAVE[,LOSS]" }

// distributionFlag reads the name of a distribution; a file becomes an absolute
// path, since the emulator stands in another folder.
type distributionFlag struct{ *impair.Distribution }

// Set implements pflag.Value.
func (f distributionFlag) Set(text string) (err error) {
	if *f.Distribution = impair.Distribution(text); f.IsFile() {
		text, err = absolute("", text)
		*f.Distribution = impair.Distribution(text)
	}
	return err
}

// String implements pflag.Value.
func (f distributionFlag) String() string {
	if f.Distribution == nil {
		return ""
	}
	return string(*f.Distribution)
}

// Type implements pflag.Value.
func (f distributionFlag) Type() string { return "NAME|FILE" }

// traceFlag reads the name of a trace; a file becomes an absolute path, since the
// emulator stands in another folder.
type traceFlag struct{ name *string }

// Set implements pflag.Value.
func (f traceFlag) Set(text string) (err error) {
	*f.name, err = findTrace("", text)
	return err
}

// String implements pflag.Value.
func (f traceFlag) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}

// Type implements pflag.Value.
func (f traceFlag) Type() string { return "NAME|FILE" }

// stagesFlag collects stages; each flag adds one.
type stagesFlag []impair.Impairment

// Set implements pflag.Value.
func (f *stagesFlag) Set(text string) error {
	stage, err := parseStage(text)
	if err != nil {
		return err
	}
	*f = append(*f, stage)
	return nil
}

// String implements pflag.Value.
func (f *stagesFlag) String() string {
	if len(*f) == 0 {
		return ""
	}
	return impair.Stages(*f).String()
}

// Type implements pflag.Value.
func (f *stagesFlag) Type() string { return "KEY=VALUE,..." }

// parseStage reads "delay=5ms,loss=1%": the names of the flags and their values.
// What stands behind a comma and names no key belongs to the value before it, as
// in "burst=1%,25%,delay=5ms".
func parseStage(text string) (impair.Impairment, error) {
	var stage impair.Impairment
	var cmd cobra.Command
	impairmentFlags(&cmd, &stage)
	var keys []string
	for _, item := range strings.Split(text, ",") {
		if strings.Contains(item, "=") || len(keys) == 0 {
			keys = append(keys, item)
		} else {
			keys[len(keys)-1] += "," + item
		}
	}
	for _, item := range keys {
		key, value, found := strings.Cut(item, "=")
		if !found {
			return stage, fmt.Errorf("%q is no stage; write for example delay=5ms,loss=1%%", text)
		}
		flag := cmd.Flags().Lookup(key)
		if flag == nil {
			return stage, fmt.Errorf("a stage has no key %q; %s", key, nearest.Hint(key, stageKeys()))
		}
		if flag.Changed {
			return stage, fmt.Errorf("%q names %s twice", text, key)
		}
		flag.Changed = true
		if err := flag.Value.Set(value); err != nil {
			return stage, fmt.Errorf("%s: %w", key, err)
		}
	}
	return stage, nil
}

func stageKeys() []string {
	return []string{"delay", "jitter", "distribution", "unordered", "reorder", "loss", "burst", "duplicate", "corrupt", "rate", "queue", "trace"}
}
