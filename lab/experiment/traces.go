package experiment

import (
	"errors"
	"fmt"
	"iter"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
)

// Impairments are all stages of all links and events, each with its place in the
// file, such as "scenarios[0].links[1].then[0]".
func (e *Experiment) Impairments() iter.Seq2[string, *impair.Impairment] {
	return func(yield func(string, *impair.Impairment) bool) {
		for i := range e.Scenarios {
			s := &e.Scenarios[i]
			for j := range s.Links {
				if !s.Links[j].stages(fmt.Sprintf("scenarios[%d].links[%d]", i, j), yield) {
					return
				}
			}
			for j := range s.Timeline {
				if !s.Timeline[j].stages(fmt.Sprintf("scenarios[%d].timeline[%d]", i, j), yield) {
					return
				}
			}
		}
	}
}

func (l *Link) stages(at string, yield func(string, *impair.Impairment) bool) bool {
	if !yield(at, &l.Impairment) {
		return false
	}
	for k := range l.Then {
		if !yield(fmt.Sprintf("%s.then[%d]", at, k), &l.Then[k]) {
			return false
		}
	}
	return true
}

// ResolveTraces gives every trace that a link replays the name that find has for
// it: the absolute path of its file. What find refuses stands with its place in
// the file.
func (e *Experiment) ResolveTraces(find func(name string) (string, error)) error {
	c := checker{e: e}
	for at, i := range e.Impairments() {
		if i.Trace == "" {
			continue
		}
		found, err := find(i.Trace)
		if err != nil {
			c.add(at+".trace", "name lte, 5g or a file, from the folder of this one", "%v", err)
			continue
		}
		i.Trace = found
	}
	return c.errors.Err()
}

// ResolveRecordings has every jitter whose distribution is a file follow the
// recording that find reads there, and gives the file the name that find has for
// it: its absolute path. What find refuses, and what cannot be emulated, stands
// with its place in the file.
func (e *Experiment) ResolveRecordings(find func(name string) (string, recording.Recording, error)) error {
	c := checker{e: e}
	for at, i := range e.Impairments() {
		if !i.Distribution.IsFile() {
			continue
		}
		found, r, err := find(string(i.Distribution))
		if err != nil {
			c.add(at+".distribution", "name uniform, normal, pareto or a file, from the folder of this one", "%v", err)
			continue
		}
		i.Distribution = impair.Distribution(found)
		var wrong *impair.Error
		if err := r.Apply(i); errors.As(err, &wrong) {
			c.add(at+"."+wrong.Field, wrong.Hint, "%s", wrong.Message)
		}
	}
	return c.errors.Err()
}
