package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/internal/quantity"
)

// ratioPattern is how a ratio is written, for the schema: shares reads it.
const ratioPattern = `^(0|[1-9][0-9]{0,3})(:(0|[1-9][0-9]{0,3}))*$`

// shares are the numbers of a ratio such as 32:2:1:1, each 0 to threadsMax in its one
// spelling; false where it is none.
func shares(ratio string) (each []int, ok bool) {
	for text := range strings.SplitSeq(ratio, ":") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > threadsMax || strconv.Itoa(n) != text {
			return nil, false
		}
		each = append(each, n)
	}
	return each, true
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// AtEntries is how many threads request at each of the topology's entries, in their
// order; nil of a cell without a ratio, whose threads all call one address.
func (c Cell) AtEntries() []int {
	each, _ := shares(c.Ratio)
	return each
}

// Timed reports a closed loop by time: each thread goes on for Duration, whatever the
// number of requests that makes.
func (c Cell) Timed() bool { return c.Rate == 0 && c.Duration > 0 }

// split sets how many threads request at each entry, in place of at one address.
func split(c *Cell, ratio string) {
	if c.Ratio = ratio; ratio != "" {
		c.Threads = sum(c.AtEntries())
	}
}

// entries checks that a topology has them where a load has a ratio, and only there.
func (c *checker) entries() {
	switch n := len(c.e.Topology.Entries); {
	case n == 0 && c.e.Load.Ratio != nil:
		c.add("load.ratio", "add entries: [c1/one, c1/two] to the topology, or write threads", "the topology has no entries for a ratio")
	case n > 0 && c.e.Load.Ratio == nil:
		c.add("topology.entries", fmt.Sprintf("add ratio: %q to the load, or remove the key", "1"+strings.Repeat(":1", n-1)),
			"nothing says how many threads request at each entry")
	}
}

// atEntries checks a load that says how many threads request at each entry. By
// iterations the threads of a fast entry would end first, and alter the ratio.
func (c *checker) atEntries() {
	l, entries := c.e.Load, len(c.e.Topology.Entries)
	values(c, "load.ratio", l.Ratio, func(text string) string {
		each, ok := shares(text)
		switch {
		case !ok:
			return `write how many threads request at each entry, such as "8:4:4:4"`
		case entries > 0 && len(each) != entries:
			return fmt.Sprintf("write a number for each entry of the topology, %d in all", entries)
		case sum(each) < 1 || sum(each) > threadsMax:
			return fmt.Sprintf("write 1 to %d threads in all", threadsMax)
		}
		return ""
	})
	for _, key := range []struct {
		name, hint string
		given      bool
	}{
		{"threads", "remove it: the ratio says how many threads there are", l.Threads != nil},
		{"iterations", "remove it: with a ratio every thread goes on for duration", l.Iterations != 0},
		{"rate", "remove it, or remove ratio: an open loop calls one address", l.Rate != nil},
		{"arrivals", "remove it, or remove ratio: an open loop calls one address", l.Arrivals != ""},
	} {
		if key.given {
			c.add("load."+key.name, key.hint, "a load with a ratio takes no %s", key.name)
		}
	}
	switch {
	case l.Duration == 0:
		c.add("load", "add duration: 30s", "a load with a ratio needs a duration")
	case l.Ramp >= l.Duration:
		c.add("load.ramp", "write less than duration", "the last threads would begin when the load is over")
	}
	within(c, "load.duration", []quantity.Duration{l.Duration}, 0, timeMax)
}

// settling checks a load of which the first requests do not count, by time.
func (c *checker) settling() {
	l := c.e.Load
	within(c, "load.settle", []quantity.Duration{l.Settle}, 0, timeMax)
	switch {
	case l.Settle == 0:
	case l.Ratio == nil:
		c.add("load.settle", "add a ratio, or remove it", "only a load with a ratio settles")
	case l.Warmup != 0:
		c.add("load.settle", "remove one of them", "warm-up is by settle or by warmup")
	}
}

// rotation checks a load whose threads go from entry to entry.
func (c *checker) rotation() {
	l := c.e.Load
	within(c, "load.rotate", []quantity.Duration{l.Rotate}, 0, timeMax)
	switch {
	case l.Rotate == 0:
	case l.Ratio == nil:
		c.add("load.rotate", "add a ratio, or remove it", "threads go on to the next entry only where a ratio has them at entries")
	case l.Rotate >= l.Duration:
		c.add("load.rotate", "write less than duration", "the load is over before a thread goes on to the next entry")
	case !slices.Equal(l.Connection, List[string]{ConnectionNew}):
		c.add("load.rotate", "write connection: new", "a connection that is kept stays at its entry")
	}
}
