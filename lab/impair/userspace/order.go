package userspace

import (
	"fmt"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
	"skerry.dev/skerry/lab/impair/recording"
	"skerry.dev/skerry/lab/impair/textfile"
	"skerry.dev/skerry/lab/impair/trace"
)

// readyOrder is an order of which nothing is in force yet, and nothing can be
// refused any more but by the kernel.
type readyOrder struct {
	links []readyLink
	rules []classify.Rule
	files files
}

// readyLink is a direction that acts, the queue that it has, and what the kernel is
// told of that.
type readyLink struct {
	name     string
	queue    uint16
	next     *direction
	messages [][]byte
}

// files that directions follow, as they were when a direction began to.
type files struct {
	traces     textfile.Kept[*trace.Trace]
	recordings recording.Kept
}

func (f files) next() files { return files{f.traces.Next(), f.recordings.Next()} }

// prepareLocked makes an order ready. A direction that has never done anything
// needs no queue; one that only stops doing so keeps it.
func (e *Engine) prepareLocked(directions []impair.Direction, before map[string]*direction, known files) (readyOrder, error) {
	o := readyOrder{files: known}
	for _, d := range directions {
		if d.IsZero() && before[d.Name] == nil {
			if d.Exempts() {
				o.rules = append(o.rules, classify.Rule{Match: d.Match, Exempt: true})
			}
			continue
		}
		queue, err := e.queueLocked(d.Name)
		if err != nil {
			return o, err
		}
		l := readyLink{name: d.Name, queue: queue}
		if err := l.prepare(d, int64(time.Since(e.epoch)), known); err != nil {
			return o, fmt.Errorf("link %s: %w", d.Name, err)
		}
		l.next.before = before[d.Name]
		o.links = append(o.links, l)
		o.rules = append(o.rules, classify.Rule{Match: d.Match, Queue: queue})
	}
	return o, nil
}

// prepare has the link do what a direction is to do from now on.
func (l *readyLink) prepare(d impair.Direction, now int64, known files) error {
	stages := d.Stages()
	if len(stages) > impair.StagesMax {
		return fmt.Errorf("%d stages are more than %d", len(stages), impair.StagesMax)
	}
	if err := recording.FillFrom(known.recordings, stages); err != nil {
		return err
	}
	l.next = newDirection(stages, d.Seed)
	length := uint32(copyRange)
	if stages.Copies() {
		length = copyWhole
	}
	l.messages = bindMessages(l.queue, !stages.SplitsPackets(d.Unit), length, queueLength)
	return l.next.replay(now, func(name string) (*trace.Trace, error) { return known.traces.Open(name, trace.Open) })
}
