package userspace

// A packet: nftables rule → NFQUEUE (kernel) → receive → enter → pending heap →
// due → enter the next stage, or verdict (kernel forwards it). A corrupted one
// leaves by a verdict that holds its bytes, a copy by a raw socket, which no
// forward hook sees. One OS-locked thread owns the sockets' data path, the heap,
// the parcels and every direction's state; the control side swaps the table of
// directions and reads counters, both atomically. Nothing blocks but wait, and
// wait ends before the next packet is due.

import (
	"fmt"
	"time"
)

// path is the state of the data-path thread.
type path struct {
	engine   *Engine
	pending  *pending
	parcels  *parcels
	verdicts []byte
	// epoch is the engine's.
	epoch time.Time
	// drained is when all that had come was read: what is read later came later.
	drained int64
	// work is what the thread has to rest for.
	work work
	// expected is when the loop was last seen to go on, or when it was to wake up;
	// slept is that it has read nothing since.
	expected int64
	slept    bool
}

func (p *path) loop() error {
	for !p.engine.stop.Load() {
		p.begin()
		now := p.now()
		p.reach(now)
		if err := p.release(now); err != nil {
			return err
		}
		n, err := p.engine.socket.receive()
		if err != nil {
			return fmt.Errorf("read NFQUEUE: %w", err)
		}
		if n > 0 {
			if err := p.take(n); err != nil {
				return err
			}
		}
		if n < batch {
			p.drained = now
		}
		p.pause(n > 0)
	}
	return nil
}

// begin a turn: from here on the table counts as it is now.
func (p *path) begin() {
	p.engine.turns.Add(1)
	if p.engine.changed.Swap(false) {
		p.engine.goOn()
	}
}

func (p *path) now() int64 { return int64(time.Since(p.epoch)) }

// reach records how much later than expected the loop has come here.
func (p *path) reach(now int64) {
	p.engine.gaps.record(now - p.expected)
	p.expected = now
}

// release lets the packets go on that are due: to their next stage, or out.
func (p *path) release(now int64) error {
	for len(p.pending.items) > 0 && p.pending.items[0].due <= now {
		w := p.pending.pop()
		d := p.engine.table[w.queue()].Load()
		if w.slot != 0 && !d.last(w.stage()) {
			known := p.parcels.at(w.slot)
			w.where++ // the next stage
			d.count.came[w.stage()-1].Add(1)
			if err := p.enter(d, w, known.frame, known.bytes); err != nil {
				return err
			}
			continue
		}
		if err := p.leave(d, w); err != nil {
			return err
		}
		if late := now - w.due; late > 0 {
			if late > d.count.lateMax.Load() {
				d.count.lateMax.Store(late)
			}
			if late > d.tolerance {
				d.count.late.Add(1)
			}
		}
		if len(p.verdicts) == 0 {
			now = p.now()
		}
	}
	return p.flush()
}

// leave lets a packet out of its last stage. A copy goes by another socket, after
// the packet that it is a copy of.
func (p *path) leave(d *direction, w waiting) error {
	if w.slot == 0 {
		return p.verdict(w.queue(), w.id, verdictAccept)
	}
	defer p.parcels.remove(w.slot)
	switch known := p.parcels.at(w.slot); {
	case known.copied:
		if err := p.flush(); err != nil {
			return err
		}
		if p.engine.socket.inject(known.bytes) != nil {
			d.count.refused.Add(1)
		}
		return nil
	case known.altered:
		p.verdicts = appendAltered(p.verdicts, w.queue(), w.id, known.bytes)
		return p.flushFull()
	}
	return p.verdict(w.queue(), w.id, verdictAccept)
}

// take decides about the packets of n received messages.
func (p *path) take(n int) error {
	t := time.Now()
	now := int64(t.Sub(p.epoch))
	wallToEngine := now - t.UnixNano()
	for i := range n {
		message := p.engine.socket.message(i)
		q, err := parsePacket(message)
		if err != nil {
			p.acknowledge(message)
			continue
		}
		arrival := now
		if q.arrival != 0 {
			arrival = p.believed(q.arrival+wallToEngine, now)
		}
		if p.slept { // the packet that was to wake the thread up
			p.engine.gaps.record(now - arrival)
			p.slept = false
		}
		if err := p.decide(q, arrival); err != nil {
			return err
		}
	}
	return p.flush()
}

// believed is a packet's arrival as the kernel has stamped it, or now where the
// wall clock must have been stepped since. However long this thread was kept from
// its packets, their stamps count, so that they are late by all of it.
func (p *path) believed(arrival, now int64) int64 {
	if arrival > now || arrival < p.drained-delayedMax {
		return now
	}
	return arrival
}

// decide has a packet enter the first stage of its direction.
func (p *path) decide(q queued, arrival int64) error {
	if int(q.queue) >= directionsMax {
		return p.verdict(q.queue, q.id, verdictDrop)
	}
	d := p.engine.table[q.queue].Load()
	d.count.packets.Add(1)
	d.count.bytes.Add(uint64(q.length))
	frame := frameBytes(q.length, q.head)
	w := waiting{due: arrival, id: q.id, place: inFirst(q.queue)}
	if d.plain { // enter, without what most packets do not need
		if d.before != nil {
			d.goOn()
		}
		var f fate
		w.due, f = d.stages[0].admitPlain(arrival, frame)
		return p.settle(d, w, f)
	}
	bytes := q.head
	if len(bytes) < q.length { // all but its head has stayed in the kernel
		bytes = nil
	}
	if !d.last(0) {
		kept := bytes
		if !d.copies[0] {
			kept = nil
		}
		if w.slot = p.parcels.add(frame, kept); w.slot == 0 {
			d.count.overflowed.Add(1)
			return p.verdict(q.queue, q.id, verdictDrop)
		}
	}
	return p.enter(d, w, frame, bytes)
}

// enter has a packet meet a stage, to which it comes at w.due: it is lost, or
// waits there. Its bytes are nil where they are not known.
func (p *path) enter(d *direction, w waiting, frame int, bytes []byte) error {
	d.goOn()
	s := d.stages[w.stage()]
	o := s.admit(w.due, frame)
	if !s.plain {
		o.restrict(bytes)
		d.count.tell(o)
	}
	if o.fate == pass && (o.duplicated || o.corrupted) && !p.pending.full() {
		return p.alter(d, w, o, visitor{frame, bytes})
	}
	w.due = o.due
	return p.settle(d, w, o.fate)
}

// settle has a packet wait that passes, and drops any other.
func (p *path) settle(d *direction, w waiting, f fate) error {
	if f == pass && !p.pending.full() {
		p.pending.push(w)
		return nil
	}
	d.count.drop(f)
	return p.discard(w)
}

// visitor is what is known of a packet that comes to a stage.
type visitor struct {
	frame int
	bytes []byte
}

// alter has a packet wait that was chosen to be corrupted or duplicated, with its
// copy behind it.
func (p *path) alter(d *direction, w waiting, o outcome, v visitor) error {
	twin := waiting{due: o.copyDue, place: place{where: w.where}}
	if o.duplicated && o.copyFate == pass {
		if twin.slot = p.parcels.add(v.frame, v.bytes); twin.slot != 0 {
			p.parcels.at(twin.slot).copied = true
		}
	}
	if o.corrupted {
		slot := p.parcels.hold(w.slot, v.frame, v.bytes)
		if slot == 0 {
			d.count.overflowed.Add(1)
			p.parcels.remove(twin.slot)
			return p.discard(w)
		}
		w.slot = slot
		known := p.parcels.at(slot)
		known.altered = true
		flip(known.bytes, d.stages[w.stage()].random)
	}
	w.due = o.due
	p.pending.push(w)
	switch {
	case !o.duplicated:
	case twin.slot == 0 || p.pending.full():
		p.parcels.remove(twin.slot)
		d.count.overflowed.Add(1)
	default:
		p.pending.push(twin)
	}
	return nil
}

// discard drops a packet that the kernel holds, or a copy that it does not.
func (p *path) discard(w waiting) error {
	copied := w.slot != 0 && p.parcels.at(w.slot).copied
	p.parcels.remove(w.slot)
	if copied {
		return nil
	}
	return p.verdict(w.queue(), w.id, verdictDrop)
}

// acknowledge passes the kernel's answer to a configuration on. A verdict is
// answered only where its packet has gone, as with the port that it came by.
func (p *path) acknowledge(message []byte) {
	a, ok := parseAck(message)
	if !ok || a.number == 0 {
		return
	}
	select {
	case p.engine.acks <- a:
	default: // nobody has asked for so many
	}
}

func (p *path) verdict(queue uint16, id, verdict uint32) error {
	p.verdicts = appendVerdict(p.verdicts, queue, id, verdict)
	return p.flushFull()
}

// flushFull sends the verdicts once they are a batch.
func (p *path) flushFull() error {
	if len(p.verdicts) < batch*verdictLen {
		return nil
	}
	return p.flush()
}

func (p *path) flush() error {
	if len(p.verdicts) == 0 {
		return nil
	}
	err := p.engine.socket.send(p.verdicts)
	p.verdicts = p.verdicts[:0]
	if err != nil {
		return fmt.Errorf("send verdicts: %w", err)
	}
	return nil
}

// pause sleeps while nothing is due, and at saturation now and then. Sleep that
// was asked for is no gap; the time after it is.
func (p *path) pause(received bool) {
	now := p.now()
	p.reach(now)
	gap := int64(idle)
	if len(p.pending.items) > 0 {
		gap = p.pending.items[0].due - now
	}
	switch {
	case !received && gap > int64(spin) && (gap > int64(spin+restFor) || !p.work.due(now)):
		p.engine.socket.wait(time.Duration(gap - int64(spin)))
		p.slept = true
		p.work.rest(now, p.now())
		p.expected = now + gap - int64(spin)
	case p.work.due(now):
		rest(restFor)
		p.work.rest(now, p.now())
		p.expected = now + int64(restFor)
	}
}
