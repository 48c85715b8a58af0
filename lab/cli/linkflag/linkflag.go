// Package linkflag is the flags that say what a link does to packets, and stages of a
// link in the same words. Start at Add.
package linkflag

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/impair"
)

// Add defines a flag for each thing that a link can do to packets;
// their names are the keys of an experiment file.
func Add(cmd *cobra.Command, does *impair.Impairment) {
	flags := cmd.Flags()
	flags.Var(&does.Delay, "delay", "delay of every packet, such as 5ms")
	flags.Var(&does.Jitter, "jitter", "variation of the delay")
	flags.Var(distribution{&does.Distribution}, "distribution", "of the jitter: uniform (default), normal, pareto, or a file of measured delays")
	flags.BoolVar(&does.Unordered, "unordered", does.Unordered, "let jitter change the order of packets")
	flags.Var(&does.Reorder, "reorder", "probability that a packet skips the delay and overtakes, such as 1%")
	flags.Var(&does.Loss, "loss", "probability that a packet is lost, such as 0.1%")
	flags.Var(burst{&does.Burst}, "burst", "bursts of loss: probability that a packet begins one, ends it, is lost in it (100%)")
	flags.Var(&does.Duplicate, "duplicate", "probability that a packet arrives twice")
	flags.Var(&does.Corrupt, "corrupt", "probability that a bit of a packet is flipped")
	flags.Var(&does.Rate, "rate", "rate in Ethernet frames, such as 100mbit")
	flags.Var(&does.Queue, "queue", "bytes that may wait for the rate, such as 256KB")
	flags.Var(traceName{&does.Trace}, "trace", "replay lte, 5g or a file in place of a rate")
	console.WithoutDefault(cmd, stageKeys()...)
}

// burst reads "1%,25%" or "1%,25%,90%".
type burst struct{ *impair.Burst }

// Set implements pflag.Value.
func (f burst) Set(text string) error {
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
func (f burst) String() string {
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
func (f burst) Type() string { return "ENTER,LEAVE[,LOSS]" }

// distribution reads the name of a distribution; a file becomes an absolute
// path, since the emulator stands in another folder.
type distribution struct{ *impair.Distribution }

// Set implements pflag.Value.
func (f distribution) Set(text string) (err error) {
	if *f.Distribution = impair.Distribution(text); f.IsFile() {
		text, err = source.Absolute("", text)
		*f.Distribution = impair.Distribution(text)
	}
	return err
}

// String implements pflag.Value.
func (f distribution) String() string {
	if f.Distribution == nil {
		return ""
	}
	return string(*f.Distribution)
}

// Type implements pflag.Value.
func (f distribution) Type() string { return "NAME|FILE" }

// traceName reads the name of a trace; a file becomes an absolute path, since the
// emulator stands in another folder.
type traceName struct{ name *string }

// Set implements pflag.Value.
func (f traceName) Set(text string) (err error) {
	*f.name, err = source.FindTrace("", text)
	return err
}

// String implements pflag.Value.
func (f traceName) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}

// Type implements pflag.Value.
func (f traceName) Type() string { return "NAME|FILE" }

// Stages collects stages; each flag adds one.
type Stages []impair.Impairment

// Set implements pflag.Value.
func (f *Stages) Set(text string) error {
	stage, err := parseStage(text)
	if err != nil {
		return err
	}
	*f = append(*f, stage)
	return nil
}

// String implements pflag.Value.
func (f *Stages) String() string {
	if len(*f) == 0 {
		return ""
	}
	return impair.Stages(*f).String()
}

// Type implements pflag.Value.
func (f *Stages) Type() string { return "KEY=VALUE,..." }

// parseStage reads "delay=5ms,loss=1%": the names of the flags and their values.
// What stands behind a comma and names no key belongs to the value before it, as
// in "burst=1%,25%,delay=5ms".
func parseStage(text string) (impair.Impairment, error) {
	var stage impair.Impairment
	var cmd cobra.Command
	Add(&cmd, &stage)
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
