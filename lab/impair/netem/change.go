package netem

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
)

// Change puts exactly these directions into force, and those of a name that is
// there count on. Where each keeps the kinds of its qdiscs, these are changed in
// place and lose nothing; else all are made anew, as by Set. It tells the counters
// of what was in force until then, but for the packets of the moment: the kernel
// does not stop for it. Files that are followed already are not read again.
func (b *Backend) Change(directions []impair.Direction) (map[string]impair.Counters, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, err := b.readLocked()
	if err != nil {
		return nil, err
	}
	ended, err := countAll(b.places, found, b.past)
	if err != nil {
		return nil, err
	}
	o, err := prepare(directions, b.files)
	if err != nil {
		return nil, err
	}
	if b.sameShapeLocked(o.places) && slices.Equal(o.rules, b.ruled) {
		if b.past, err = rebase(ended, o.places, found); err != nil {
			return nil, err
		}
		return ended, b.alterLocked(o)
	}
	if err := b.setLocked(o); err != nil {
		return nil, err
	}
	b.past = ended
	return ended, nil
}

// sameShapeLocked reports that the trees differ from those in force by no more
// than the options of their qdiscs.
func (b *Backend) sameShapeLocked(places []placed) bool {
	return slices.EqualFunc(places, b.places, func(p, now placed) bool { return p.shape() == now.shape() })
}

// shape names the classes of a tree and the kinds of their qdiscs.
func (t tree) shape() string {
	text := t.out
	for _, c := range t.classes {
		text += fmt.Sprintf(" %s %+v:", c.Name, c.Match)
		for _, s := range c.steps {
			text += fmt.Sprintf(" %x %t", s.handle, s.splitter)
		}
	}
	return text
}

// alterLocked gives the qdiscs in force other options, those at the root none.
func (b *Backend) alterLocked(o readyOrder) error {
	b.files = o.files
	for i, p := range o.places {
		for _, q := range p.qdiscs(p.link.Attrs().MTU)[1:] {
			if err := request(unix.RTM_NEWQDISC, 0, p.link, q); err != nil {
				return fmt.Errorf("change %s qdisc at interface %s: %w", q.kind, p.out, err)
			}
		}
		b.places[i] = p
	}
	return nil
}
