package netem

import (
	"fmt"
	"math"
	"slices"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
	"skerry.dev/skerry/lab/impair/recording"
)

// What a namespace can hold. Every qdisc is named by its place alone, so the
// same directions always make the same tree.
const (
	// bandsMax is sch_prio's own bound (TCQ_PRIO_BANDS). The first band is for
	// everything that no direction names.
	bandsMax = 16
	// directionsMax is how many impaired directions can end at one interface.
	directionsMax = bandsMax - 1
	// interfacesMax bounds the interfaces at which directions end.
	interfacesMax = 0x1000
	// rootMajor and the interface's index name a root; innerMajor, the band and
	// the step name a qdisc below it. Majors from 0x8000 are the kernel's.
	rootMajor, innerMajor = 0x1000, 0x2000
	// stepsMax bounds the qdiscs of one direction.
	stepsMax = 32

	// jitterMax is where the kernel cuts jitter, in ns.
	jitterMax = math.MaxInt32
)

// tree is what stands at one interface: a prio qdisc, and in each of its bands
// the qdiscs of one direction.
type tree struct {
	out     string
	handle  uint32
	classes []class
}

// class is the band of one direction. Its id is what the classifier writes to
// skb->priority, which prio takes for the number of the band.
type class struct {
	impair.Direction
	id    uint32
	steps []step
}

// step is one qdisc of a direction; a packet passes a direction's steps in
// order. A splitter cuts super-packets into the segments they stand for, the
// others are netem's and do their part of a stage.
type step struct {
	handle   uint32
	splitter bool
	impair.Impairment
}

// fill has distributions that are files be what these say; what was kept is not
// read again.
func fill(directions []impair.Direction, kept recording.Kept) ([]impair.Direction, error) {
	directions = slices.Clone(directions)
	for i := range directions {
		d := &directions[i]
		stages := d.Stages()
		if err := recording.FillFrom(kept, stages); err != nil {
			return nil, fmt.Errorf("link %s: %w", d.Name, err)
		}
		d.Impairment, d.Then = stages[0], stages[1:]
	}
	return directions, nil
}

// plan gives every direction that does anything its band.
func plan(directions []impair.Direction) ([]tree, error) {
	var trees []tree
	index := map[string]int{}
	for _, d := range directions {
		if d.IsZero() {
			continue
		}
		if d.Stages().Replays() {
			return nil, refuse(d, "netem replays no traces")
		}
		i, ok := index[d.Match.Out]
		if !ok {
			i = len(trees)
			if i == interfacesMax {
				return nil, refuse(d, "impaired links end at more than %d interfaces", interfacesMax)
			}
			index[d.Match.Out] = i
			trees = append(trees, tree{out: d.Match.Out, handle: uint32(rootMajor+i) << 16})
		}
		t := &trees[i]
		if len(t.classes) == directionsMax {
			return nil, refuse(d, "more than %d impaired directions end at interface %s, which is what netem's prio can hold", directionsMax, t.out)
		}
		band := len(t.classes) + 1
		one := class{Direction: d, id: t.handle | uint32(band+1), steps: steps(d, band)}
		if err := one.check(); err != nil {
			return nil, err
		}
		t.classes = append(t.classes, one)
	}
	for _, t := range trees {
		if err := t.checkCopies(); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// rules that have packets find their class, and those that are to find none.
func rules(trees []tree, directions []impair.Direction) []classify.Rule {
	var all []classify.Rule
	for _, t := range trees {
		for _, c := range t.classes {
			all = append(all, classify.Rule{Match: c.Match, Class: c.id})
		}
	}
	for _, d := range directions {
		if d.Exempts() {
			all = append(all, classify.Rule{Match: d.Match, Exempt: true})
		}
	}
	return all
}

// refuse says what netem cannot do of a direction, and what can.
func refuse(d impair.Direction, format string, args ...any) error {
	return fmt.Errorf("link %s: %s; choose the link back end userspace", d.Name, fmt.Sprintf(format, args...))
}

// check refuses what the kernel would do in another way than was asked.
func (c class) check() error {
	if len(c.steps) > stepsMax {
		return refuse(c.Direction, "its stages take %d qdiscs, more than %d", len(c.steps), stepsMax)
	}
	for i, s := range c.steps {
		switch {
		case deviation(s.Impairment) > jitterMax:
			return refuse(c.Direction, "netem cannot spread a jitter of %s: 2.147s at most", deviation(s.Impairment))
		case s.Reorder > 0 && i < len(c.steps)-1:
			// The kernel hands such a packet on past the child qdisc.
			return refuse(c.Direction, "a packet that netem reorders skips the stages after that one")
		}
	}
	return nil
}

// checkCopies refuses a duplicating netem beside others: its copies enter the
// tree at the root, so they would meet every decision once more. Kernels from
// Linux 6.17 on, and stable ones from mid-2025, refuse such a tree themselves.
func (t tree) checkCopies() error {
	netems := 0
	for _, c := range t.classes {
		for _, s := range c.steps {
			if !s.splitter {
				netems++
			}
		}
	}
	for _, c := range t.classes {
		for _, s := range c.steps {
			switch {
			case s.Duplicate == 0:
			case s.Lossy():
				return refuse(c.Direction, "netem would decide on the loss of a duplicated packet's copy again")
			case netems > 1:
				return refuse(c.Direction, "netem duplicates packets only where it stands alone, and interface %s needs %d of them", t.out, netems)
			}
		}
	}
	return nil
}

// steps takes the stages of a direction apart where one netem would not do:
//   - netem decides once per super-packet, so a splitter goes first;
//   - it counts random losses and overflows as one, so where both can happen
//     the loss has a netem of its own;
//   - it keeps jitter in order where it has a rate, and a packet that it reorders
//     skips the rate as well, so either comes after the rate.
func steps(d impair.Direction, band int) []step {
	var all []step
	add := func(splitter bool, i impair.Impairment) {
		major := innerMajor + band*stepsMax + len(all)
		all = append(all, step{handle: uint32(major) << 16, splitter: splitter, Impairment: i})
	}
	if d.Stages().SplitsPackets(d.Unit) {
		add(true, impair.Impairment{})
	}
	for _, rest := range d.Stages() {
		if rest.IsZero() {
			continue
		}
		if rest.Rate > 0 && rest.Lossy() {
			add(false, impair.Impairment{Loss: rest.Loss, Burst: rest.Burst})
			rest.Loss, rest.Burst = 0, impair.Burst{}
		}
		if rest.Rate > 0 && (rest.Unordered || rest.Reorder > 0) {
			add(false, impair.Impairment{
				Duplicate: rest.Duplicate, Corrupt: rest.Corrupt,
				Rate: rest.Rate, Queue: quantity.Size(rest.QueueBytes()),
			})
			rest.Duplicate, rest.Corrupt, rest.Rate, rest.Queue = 0, 0, 0, 0
		}
		add(false, rest)
	}
	return all
}
