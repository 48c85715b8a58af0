package userspace

import (
	"math/rand/v2"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/trace"
)

// fate is what a stage decided for a packet.
type fate uint8

const (
	pass fate = iota
	lose
	overflow
)

// outcome is all that a stage decided for a packet.
type outcome struct {
	// due is when the packet leaves the stage, if it passes.
	due int64
	// copyDue is when its copy does, if it is duplicated and copyFate is pass.
	copyDue int64
	fates
	chosen
}

type fates struct{ fate, copyFate fate }

// chosen is what else is done to a packet.
type chosen struct{ duplicated, corrupted, reordered bool }

// stage decides due times and fates for one stage of a direction. It is pure but
// for its own state.
type stage struct {
	impair.Impairment
	queueBytes float64
	nsPerByte  float64
	random     *rand.Rand
	// plain is that packets are neither duplicated nor corrupted nor reordered, and
	// no trace is replayed.
	plain bool
	// lossy is that packets may be lost at random.
	lossy bool
	// bad is the state of a burst.
	bad bool
	// busyUntil is when the last frame will have left the rate limiter,
	// lastDue when the last packet is due; ns on the engine's clock.
	busyUntil, lastDue int64
	// player is what a trace replays in place of a rate.
	player *trace.Player
}

// newStage makes stage number i of a direction with a seed.
func newStage(does impair.Impairment, seed, i uint64) *stage {
	const stream = 0x736b65727279
	s := &stage{Impairment: does, queueBytes: float64(does.QueueBytes())}
	s.random = rand.New(rand.NewPCG(seed, stream+i))
	s.lossy = does.Lossy()
	s.plain = does.Duplicate == 0 && does.Corrupt == 0 && does.Reorder == 0 && does.Trace == ""
	// A link that has long been up is found in either state by its share.
	s.bad = does.Burst.Enter > 0 && s.random.Float64() < does.Burst.Share()
	if does.Rate > 0 {
		s.nsPerByte = 8e9 / float64(does.Rate)
	}
	return s
}

// replay begins the stage's trace at a time, if it has one.
func (s *stage) replay(began int64, open func(name string) (*trace.Trace, error)) error {
	if s.Trace == "" {
		return nil
	}
	t, err := open(s.Trace)
	if err != nil {
		return err
	}
	s.player = trace.NewPlayer(t, began)
	if s.Queue == 0 {
		const seconds, bits = 0.5, 8
		s.queueBytes = max(s.queueBytes, seconds*t.Mean()/bits)
	}
	return nil
}

// admit decides the fate of a packet that arrived at a time (ns) and takes
// frame bytes on the wire, and when it is due: serialisation, then propagation.
func (s *stage) admit(arrival int64, frame int) (o outcome) {
	if s.plain {
		o.due, o.fate = s.admitPlain(arrival, frame)
		return o
	}
	if s.lossy && s.loses() {
		o.fate = lose
		return o
	}
	o.chosen = chosen{s.chance(s.Duplicate), s.chance(s.Corrupt), s.chance(s.Reorder)}
	sent, ok := s.serialise(arrival, frame)
	if !ok {
		o.fate, o.copyFate = overflow, overflow
		return o
	}
	var wait int64
	if !o.reordered {
		wait = max(0, int64(s.Delay)+s.jitter())
	}
	o.due = s.order(sent+wait, o.reordered)
	if o.duplicated {
		if sent, ok = s.serialise(arrival, frame); !ok {
			o.copyFate = overflow
			return o
		}
		o.copyDue = s.order(sent+wait, o.reordered)
	}
	return o
}

// admitPlain is admit for a stage that is plain.
func (s *stage) admitPlain(arrival int64, frame int) (due int64, f fate) {
	if s.lossy && s.loses() {
		return 0, lose
	}
	due = arrival
	if s.nsPerByte > 0 {
		var ok bool
		if due, ok = s.serialise(arrival, frame); !ok {
			return 0, overflow
		}
	}
	if s.Jitter == 0 {
		return s.order(due+int64(s.Delay), false), pass
	}
	return s.order(due+max(0, int64(s.Delay)+s.jitter()), false), pass
}

// loses draws for a packet whether it is lost, and steps the chain of bursts.
func (s *stage) loses() bool {
	lost := false
	if s.bad {
		lost = s.chance(s.Burst.Drops())
	} else if s.Loss > 0 {
		lost = s.random.Float64() < float64(s.Loss)
	}
	if s.Burst.Enter > 0 {
		turns := s.Burst.Enter
		if s.bad {
			turns = s.Burst.Leave
		}
		s.bad = s.bad != s.chance(turns)
	}
	return lost
}

func (s *stage) chance(p quantity.Fraction) bool {
	return p > 0 && s.random.Float64() < float64(p)
}

// serialise has a frame wait for the rate: when it has left, and whether the
// queue had room for it.
func (s *stage) serialise(arrival int64, frame int) (sent int64, ok bool) {
	if s.player != nil {
		sent, delay, ok := s.player.Send(arrival, frame, int64(s.queueBytes))
		return sent + int64(delay), ok
	}
	if s.nsPerByte == 0 {
		return arrival, true
	}
	backlog := max(0, float64(s.busyUntil-arrival)) / s.nsPerByte
	if backlog > 0 && backlog+float64(frame) > s.queueBytes {
		return 0, false
	}
	s.busyUntil = max(s.busyUntil, arrival) + int64(float64(frame)*s.nsPerByte)
	return s.busyUntil, true
}

// order keeps a packet behind those before it, unless it may overtake.
func (s *stage) order(due int64, overtakes bool) int64 {
	if s.Unordered || overtakes {
		return due
	}
	s.lastDue = max(s.lastDue, due)
	return s.lastDue
}

func (s *stage) jitter() int64 {
	if s.Jitter == 0 {
		return 0
	}
	return int64(s.Quantile(s.random.Float64()) * float64(s.Jitter))
}
