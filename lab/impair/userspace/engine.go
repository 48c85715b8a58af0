// Package userspace emulates links on kernels without sch_netem: packets wait
// in the kernel's NFQUEUE while one thread here decides when, and whether, each
// may go on. It never holds or copies payload. Start at Start; the decision
// itself is direction.admit.
//
// A packet: nftables rule → NFQUEUE (kernel) → receive → admit → pending heap →
// due → verdict (kernel forwards it). One OS-locked thread owns the socket's
// data path, the heap and every direction's state; the control side swaps the
// table of directions and reads counters, both atomically. Nothing blocks but
// wait, and wait ends before the next packet is due.
package userspace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
)

const (
	// directionsMax bounds the queues of one namespace.
	directionsMax = 256
	// pendingMax bounds the packets that wait in all directions together.
	pendingMax = 1 << 18
	// spin is how long before a due time the thread stops sleeping.
	spin = 80 * time.Microsecond
	// idle bounds a sleep, so that Close is seen.
	idle = 20 * time.Millisecond
	// A FIFO thread that never sleeps is throttled by the kernel for 50 ms a
	// second: it rests for restFor after at most busyMax.
	busyMax = 2 * time.Millisecond
	restFor = 50 * time.Microsecond
	// agedMax is the oldest arrival time believed: older ones mean that the
	// wall clock was stepped.
	agedMax = int64(time.Second)
	ackWait = 2 * time.Second
)

// Priority of the thread, when SCHED_FIFO is allowed.
const Priority = 50

// Engine emulates the directions of one namespace.
type Engine struct {
	socket *socket
	rules  *classify.Table
	table  [directionsMax]atomic.Pointer[direction]
	gaps   gaps
	stop   atomic.Bool
	done   chan error
	acks   chan int32

	// mu guards what only the control side uses.
	mu     sync.Mutex
	queues map[string]uint16
	bound  map[uint16]bool
	order  []string
	// FIFO says whether the kernel granted real-time priority.
	FIFO bool
}

// Start opens the queues' socket and starts the data-path thread, in the
// network namespace of the process.
func Start() (*Engine, error) {
	// The thread must not stop for the collector; what the control side
	// allocates is bounded by a limit far above its need.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	s, err := openSocket()
	if err != nil {
		return nil, &MissingError{err}
	}
	rules, err := classify.Open()
	if err != nil {
		s.close()
		return nil, err
	}
	e := &Engine{
		socket: s, rules: rules,
		done: make(chan error, 1), acks: make(chan int32, 1),
		queues: map[string]uint16{}, bound: map[uint16]bool{},
	}
	granted := make(chan bool)
	go e.run(granted)
	e.FIFO = <-granted
	return e, nil
}

// Probe says whether this kernel can emulate links in user space: it binds a
// queue and sets a rule in the network namespace of the calling thread, which
// should be one of its own.
func Probe() error {
	s, err := openSocket()
	if err != nil {
		return &MissingError{err}
	}
	defer s.close()
	for _, m := range bindMessages(0, true, copyRange, queueLength) {
		if err := s.ask(m); err != nil {
			return &MissingError{err}
		}
	}
	rules, err := classify.Open()
	if err != nil {
		return &MissingError{err}
	}
	match := impair.Match{In: "a", Out: "b"}
	return errors.Join(rules.Set([]classify.Rule{{Match: match}}), rules.Close())
}

// MissingError says that the kernel lacks what the back end needs.
type MissingError struct{ Err error }

// Error names the feature; there is no fallback but the netem back end.
func (e *MissingError) Error() string {
	return "the kernel has no usable NFQUEUE (nfnetlink_queue, nft_compat, xt_NFQUEUE; Linux 3.14 or later): " + e.Err.Error()
}

// Unwrap gives what the kernel said.
func (e *MissingError) Unwrap() error { return e.Err }

// Set puts exactly these directions into force. A direction that was there
// before starts anew, its counters too; packets under way keep their due times.
func (e *Engine) Set(directions []impair.Direction) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var rules []classify.Rule
	e.order = e.order[:0]
	for _, d := range directions {
		if d.IsZero() {
			continue
		}
		queue, err := e.queueLocked(d.Name)
		if err != nil {
			return err
		}
		e.table[queue].Store(newDirection(d.Impairment, d.Seed))
		if err := e.bindLocked(queue, !d.SplitsPackets(d.Unit)); err != nil {
			return fmt.Errorf("link %s: %w", d.Name, err)
		}
		e.order = append(e.order, d.Name)
		rules = append(rules, classify.Rule{Match: d.Match, Queue: queue})
	}
	e.gaps.reset()
	return e.rules.Set(rules)
}

func (e *Engine) queueLocked(name string) (uint16, error) {
	if q, ok := e.queues[name]; ok {
		return q, nil
	}
	if len(e.queues) == directionsMax {
		return 0, fmt.Errorf("more than %d directions in one lab", directionsMax)
	}
	q := uint16(len(e.queues))
	e.queues[name] = q
	return q, nil
}

func (e *Engine) bindLocked(queue uint16, gso bool) error {
	messages := bindMessages(queue, gso, copyRange, queueLength)
	if e.bound[queue] {
		messages = messages[len(messages)-1:]
	}
	for _, m := range messages {
		if err := e.configureLocked(m); err != nil {
			return fmt.Errorf("bind NFQUEUE %d: %w", queue, err)
		}
	}
	e.bound[queue] = true
	return nil
}

// configureLocked sends one configuration message; its answer arrives at the
// data-path thread, which passes it on.
func (e *Engine) configureLocked(message []byte) error {
	if err := e.socket.send(message); err != nil {
		return err
	}
	select {
	case code := <-e.acks:
		if code != 0 {
			return unix.Errno(-code)
		}
		return nil
	case <-time.After(ackWait):
		return errNoAnswer
	}
}

// Counters of the directions in force, by name.
func (e *Engine) Counters() (map[string]impair.Counters, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missed, err := kernelDrops()
	if err != nil {
		return nil, err
	}
	all := make(map[string]impair.Counters, len(e.order))
	for _, name := range e.order {
		q := e.queues[name]
		all[name] = e.table[q].Load().snapshot(missed[q])
	}
	return all, nil
}

// Gaps is when the data-path thread was kept from its packets since Set: turns
// of its loop that took long, and sleeps that did not end when they should or
// when a packet came in.
func (e *Engine) Gaps() impair.Gaps { return e.gaps.snapshot() }

// Failed yields the error that ended the data path, or nil after Close.
func (e *Engine) Failed() <-chan error { return e.done }

// Close ends the thread; packets that wait are dropped.
func (e *Engine) Close() error {
	e.stop.Store(true)
	err := <-e.done
	e.socket.close()
	return errors.Join(err, e.rules.Close())
}

// kernelDrops reads how many packets each queue lost before we could read them.
func kernelDrops() (map[uint16]uint64, error) {
	const path = "/proc/self/net/netfilter/nfnetlink_queue"
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read drops of NFQUEUE: %w", err)
	}
	defer func() { _ = f.Close() }()
	drops := map[uint16]uint64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		const queueField, droppedField, userDroppedField = 0, 5, 6
		fields := strings.Fields(lines.Text())
		if len(fields) <= userDroppedField {
			return nil, fmt.Errorf("read drops of NFQUEUE: unknown format of %s", path)
		}
		queue, err := strconv.ParseUint(fields[queueField], 10, 16)
		if err != nil {
			return nil, fmt.Errorf("read drops of NFQUEUE: %w", err)
		}
		for _, i := range []int{droppedField, userDroppedField} {
			n, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read drops of NFQUEUE: %w", err)
			}
			drops[uint16(queue)] += n
		}
	}
	return drops, nil
}

// run is the data-path thread.
func (e *Engine) run(granted chan<- bool) {
	runtime.LockOSThread()
	granted <- BecomeFIFO(Priority) == nil
	p := &path{engine: e, pending: newPending(pendingMax), epoch: time.Now()}
	p.verdicts = make([]byte, 0, batch*verdictLen)
	e.done <- p.loop()
}

// BecomeFIFO gives the calling thread a real-time priority.
func BecomeFIFO(priority uint32) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority,
	}, 0)
}

// BecomeNormal gives it up again.
func BecomeNormal() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
}

// path is the state of the data-path thread.
type path struct {
	engine   *Engine
	pending  *pending
	verdicts []byte
	// epoch is time zero of the engine's clock, which is CLOCK_MONOTONIC.
	epoch time.Time
	// rested is when the thread last gave its core up.
	rested int64
	// expected is when the loop was last seen to go on, or when it was to wake up;
	// slept is that it has read nothing since.
	expected int64
	slept    bool
}

func (p *path) loop() error {
	for !p.engine.stop.Load() {
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
		p.pause(n > 0)
	}
	return nil
}

func (p *path) now() int64 { return int64(time.Since(p.epoch)) }

// reach records how much later than expected the loop has come here.
func (p *path) reach(now int64) {
	p.engine.gaps.record(now - p.expected)
	p.expected = now
}

// release lets the packets go that are due.
func (p *path) release(now int64) error {
	for len(p.pending.items) > 0 && p.pending.items[0].due <= now {
		w := p.pending.pop()
		if err := p.verdict(w.queue, w.id, verdictAccept); err != nil {
			return err
		}
		if late := now - w.due; late > 0 {
			d := p.engine.table[w.queue].Load()
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
		arrival := q.arrival + wallToEngine
		if q.arrival == 0 || arrival > now || arrival < now-agedMax {
			arrival = now
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

func (p *path) decide(q queued, arrival int64) error {
	if int(q.queue) >= directionsMax {
		return p.verdict(q.queue, q.id, verdictDrop)
	}
	d := p.engine.table[q.queue].Load()
	d.count.packets.Add(1)
	d.count.bytes.Add(uint64(q.length))
	due, f := d.admit(arrival, frameBytes(q.length, q.head))
	if f == pass && p.pending.full() {
		f = overflow
	}
	switch f {
	case lose:
		d.count.lost.Add(1)
	case overflow:
		d.count.overflowed.Add(1)
	case pass:
		p.pending.push(due, q.queue, q.id)
		return nil
	}
	return p.verdict(q.queue, q.id, verdictDrop)
}

// acknowledge passes the kernel's answer to a configuration on.
func (p *path) acknowledge(message []byte) {
	code, ok := parseAck(message)
	if !ok {
		return
	}
	select {
	case p.engine.acks <- code:
	default: // an answer that nobody waits for: a verdict on a queue that has gone
	}
}

func (p *path) verdict(queue uint16, id, verdict uint32) error {
	p.verdicts = appendVerdict(p.verdicts, queue, id, verdict)
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
	case gap > int64(spin) && !received:
		p.engine.socket.wait(time.Duration(gap - int64(spin)))
		p.rested, p.slept = p.now(), true
		p.expected = now + gap - int64(spin)
	case now-p.rested > int64(busyMax):
		rest(restFor)
		p.rested = p.now()
		p.expected = now + int64(restFor)
	}
}
