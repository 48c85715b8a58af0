package experiment

import (
	"fmt"

	"skerry.dev/skerry/lab/impair"
)

// ResolveTraces gives every trace that a link replays the name that find has for
// it: the absolute path of its file. What find refuses stands with its place in
// the file.
func (e *Experiment) ResolveTraces(find func(name string) (string, error)) error {
	c := checker{e: e}
	resolve := func(at string, l *Link) {
		c.trace(at, &l.Impairment, find)
		for k := range l.Then {
			c.trace(fmt.Sprintf("%s.then[%d]", at, k), &l.Then[k], find)
		}
	}
	for i, s := range e.Scenarios {
		for j := range s.Links {
			resolve(fmt.Sprintf("scenarios[%d].links[%d]", i, j), &s.Links[j])
		}
		for j := range s.Timeline {
			resolve(fmt.Sprintf("scenarios[%d].timeline[%d]", i, j), &s.Timeline[j].Link)
		}
	}
	return c.errors.Err()
}

func (c *checker) trace(at string, i *impair.Impairment, find func(name string) (string, error)) {
	if i.Trace == "" {
		return
	}
	found, err := find(i.Trace)
	if err != nil {
		c.add(at+".trace", "name lte, 5g or a file, from the folder of this one", "%v", err)
		return
	}
	i.Trace = found
}
