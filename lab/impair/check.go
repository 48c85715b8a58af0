package impair

import (
	"fmt"

	"skerry.dev/skerry/internal/quantity"
)

const (
	// DelayMax bounds how long a packet may be held, and with it the memory.
	DelayMax = quantity.Duration(60e9)
	// reorderMax is what can be proven: of the packets that time a link, enough
	// meet the delay.
	reorderMax = quantity.Fraction(0.25)
)

// Error says which field of an impairment is wrong, and what to write instead.
type Error struct {
	// Field by its key in a file, for example "jitter", "burst.leave" or
	// "then[0].delay".
	Field         string
	Message, Hint string
}

// Error prints the message and the hint on one line.
func (e *Error) Error() string { return e.Message + "; " + e.Hint }

func wrong(field, hint, format string, args ...any) error {
	return &Error{Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Check says what is wrong with the impairment, as an *Error.
func (i Impairment) Check() error {
	for _, check := range []func() error{i.checkDelay, i.checkChances, i.checkBurst, i.checkRate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (i Impairment) checkDelay() error {
	switch {
	case i.Delay < 0:
		return wrong("delay", "write 0 or more", "delay %s is negative", i.Delay)
	case i.Delay > DelayMax:
		return wrong("delay", fmt.Sprintf("write at most %s", DelayMax), "delay %s is too long", i.Delay)
	case i.Jitter < 0:
		return wrong("jitter", "write 0 or more", "jitter %s is negative", i.Jitter)
	case i.Jitter > DelayMax:
		return wrong("jitter", fmt.Sprintf("write at most %s", DelayMax), "jitter %s is too long", i.Jitter)
	case i.Jitter > 0 && i.Delay == 0:
		return wrong("jitter", "set delay as well", "jitter %s has no delay to vary", i.Jitter)
	case !i.Distribution.known():
		return wrong("distribution", "write uniform, normal, pareto, or a file such as delays.csv or ./delays",
			"distribution %q is not known", string(i.Distribution))
	case i.Distribution.IsFile(): // its delays can stand alone, and are cut where a packet would arrive too early
		return nil
	case i.Distribution != "" && i.Jitter == 0:
		return wrong("distribution", "set jitter as well", "distribution %s has no jitter to shape", string(i.Distribution))
	case i.Distribution != Normal && i.Jitter > i.Delay:
		return wrong("jitter", "a packet cannot arrive before it was sent: write at most the delay",
			"jitter %s is larger than delay %s", i.Jitter, i.Delay)
	case i.Unordered && i.Jitter == 0:
		return wrong("unordered", "set jitter as well", "unordered has no jitter to come from")
	}
	return nil
}

func (i Impairment) checkChances() error {
	for _, c := range []struct {
		field string
		value quantity.Fraction
	}{
		{"loss", i.Loss},
		{"burst.enter", i.Burst.Enter},
		{"burst.leave", i.Burst.Leave},
		{"burst.loss", i.Burst.Loss},
		{"duplicate", i.Duplicate},
		{"corrupt", i.Corrupt},
		{"reorder", i.Reorder},
	} {
		if !(c.value >= 0 && c.value <= 1) { // NaN too
			return wrong(c.field, "write 0% to 100%", "%s %s is no probability", c.field, c.value)
		}
	}
	switch {
	case i.Reorder > 0 && i.Delay == 0:
		return wrong("reorder", "set delay as well", "reorder %s has no delay to skip", i.Reorder)
	case i.Reorder > reorderMax:
		return wrong("reorder", fmt.Sprintf("write at most %s", reorderMax),
			"with reorder %s the delay could not be proven", i.Reorder)
	}
	return nil
}

func (i Impairment) checkBurst() error {
	b := i.Burst
	switch {
	case b.Enter == 0 && (b.Leave > 0 || b.Loss > 0):
		return wrong("burst.enter", "write how likely a packet begins one, such as 1%", "a burst with enter 0%% never begins")
	case b.Enter > 0 && b.Leave == 0:
		return wrong("burst.leave", "write how likely a packet ends one, such as 25%", "a burst with leave 0%% never ends")
	}
	return nil
}

func (i Impairment) checkRate() error {
	switch {
	case i.Rate < 0:
		return wrong("rate", "write 0 or more", "rate %s is negative", i.Rate)
	case i.Queue < 0:
		return wrong("queue", "write 0 or more", "queue %s is negative", i.Queue)
	case i.Queue > 0 && i.Rate == 0 && i.Trace == "":
		return wrong("queue", "set rate as well", "queue %s has no rate to wait for", i.Queue)
	case i.Rate > 0 && i.Trace != "":
		return wrong("trace", "keep one of the two, or write a stage for each under then", "trace %.80s takes the place of rate %s", i.Trace, i.Rate)
	}
	return nil
}
