package schedule

import (
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
)

// Read reads a plan, a YAML file; the error, a *strict.Errors or *strict.Error, is all that
// is wrong with it by itself. Whether flows fit is for Check.
func Read(file string, data []byte) (*Plan, error) {
	p := new(Plan)
	document, err := strict.Decode(file, data, p)
	if err != nil {
		return nil, err
	}
	c := checker{document: document}
	c.list(p)
	c.flows(p)
	if err := c.wrong.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

type checker struct {
	document *strict.Document
	wrong    strict.Errors
}

func (c *checker) add(path, hint, format string, args ...any) {
	c.wrong.Add(c.document.Errorf(path, hint, format, args...))
}

// within wants a value between two others.
func (c *checker) within(path string, value, least, most quantity.Duration) {
	if value < least || value > most {
		c.add(path, fmt.Sprintf("write %s to %s", least, most), "%s is not possible here", value)
	}
}

func (c *checker) list(p *Plan) {
	if p.Link <= 0 {
		c.add("link", "write for example 1gbit", "it needs the rate of the link")
	}
	c.within("guard", p.Guard, 0, quantity.Duration(guardMax))
	c.within("cycle", p.Cycle, quantity.Duration(shortest), quantity.Duration(cycleMax))
	c.within("extension", p.Extension, 0, quantity.Duration(cycleMax))
	if p.BaseTime < 0 || p.BaseTime > baseMax {
		c.add("baseTime", "write ns of CLOCK_TAI", "%d is not possible here", p.BaseTime)
	}
	if n := len(p.Entries); n < 1 || n > entriesMax {
		c.add("entries", fmt.Sprintf("write 1 to %d", entriesMax), "%d entries are not possible", n)
	}
	var covered time.Duration
	for i, e := range p.Entries {
		at := fmt.Sprintf("entries[%d]", i)
		c.within(at+".for", e.For, quantity.Duration(shortest), quantity.Duration(longest))
		for j, class := range e.Open {
			if class < 0 || class >= Classes || slices.Contains(e.Open[:j], class) {
				c.add(fmt.Sprintf("%s.open[%d]", at, j), "write each of 0 to 7 once at most", "class %d is not possible here", class)
			}
		}
		covered += e.For.Std()
	}
	if p.Cycle > 0 && covered != p.Cycle.Std() {
		c.add("entries", "make them as long as the cycle", "the entries last %s, the cycle %s", covered, p.Cycle)
	}
}

func (c *checker) flows(p *Plan) {
	if len(p.Flows) > flowsMax {
		c.add("flows", "split the plan", "%d flows are too many, the most is %d", len(p.Flows), flowsMax)
		return
	}
	names := map[string]bool{}
	for i, f := range p.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		if f.Name == "" || names[f.Name] {
			c.add(at+".name", "each has a name of its own", "there is no flow named %q by itself", f.Name)
		}
		names[f.Name] = true
		for _, wrong := range f.Wrong() {
			c.add(at+"."+wrong.Key, wrong.Hint, "%s", wrong.Message)
		}
	}
}

// Wrong is what is not possible of a value, by its key.
type Wrong struct{ Key, Message, Hint string }

// Wrong lists what is not possible of a flow by itself.
func (f Flow) Wrong() (all []Wrong) {
	if f.Class < 0 || f.Class >= Classes {
		all = append(all, Wrong{"class", fmt.Sprintf("class %d is not possible", f.Class), "write 0 to 7"})
	}
	if f.Size < 1 || f.Size > payloadMax {
		all = append(all, Wrong{"size", fmt.Sprintf("a packet of %s is not possible", f.Size), fmt.Sprintf("write 1B to %dB, which fit in a frame", payloadMax)})
	}
	if f.Period.Std() < shortest || f.Period.Std() > time.Hour {
		all = append(all, Wrong{"period", fmt.Sprintf("a packet every %s is not possible", f.Period), "write 1us to 1h"})
	}
	return all
}
