// Package userspace emulates links on kernels without sch_netem: packets wait
// in the kernel's NFQUEUE while one thread here decides when, and whether, each
// may go on. It reads payload only where a direction copies or alters packets,
// and holds that of those packets alone. It does not copy or alter super-packets:
// the kernel segments them before. Start at Start; the decision itself is
// stage.admit, the journey of a packet stands in path.go.
package userspace

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/nfqueue"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
)

const (
	// directionsMax bounds the queues of one namespace.
	directionsMax = 256
	// pendingMax bounds the packets that wait in all directions together, and
	// buffersMax those of them whose bytes are held.
	pendingMax = 1 << 18
	buffersMax = 1 << 14
	// spin is how long before a due time the thread stops sleeping.
	spin = 80 * time.Microsecond
	// idle bounds a sleep, so that Close is seen.
	idle = 20 * time.Millisecond
	// delayedMax bounds the time that the kernel may take from a packet's stamp to
	// the queue: a stamp from longer before all had been read means that the wall
	// clock was stepped.
	delayedMax = int64(time.Second)
	ackWait    = 2 * time.Second
	// acksMax bounds the answers that came too late for those who asked.
	acksMax = 64
)

// Priority of the thread, when SCHED_FIFO is allowed.
const Priority = 50

// Engine emulates the directions of one namespace.
type Engine struct {
	socket *socket
	rules  *classify.Table
	table  [directionsMax]atomic.Pointer[direction]
	// epoch is time zero of the data path's clock, which is CLOCK_MONOTONIC.
	epoch time.Time
	gaps  gaps
	// turns that the data path has begun; changed is that directions have followed
	// others since the last one.
	turns   atomic.Uint64
	changed atomic.Bool
	stop    atomic.Bool
	done    chan error
	acks    chan ack

	// mu guards what only the control side uses.
	mu sync.Mutex
	control
	// FIFO says whether the kernel granted real-time priority.
	FIFO bool
}

// control is what the control side knows of the kernel and of what is in force.
type control struct {
	queues map[string]uint16
	bound  map[uint16]bool
	// asked is the number of the last configuration message.
	asked uint32
	// drops tells how many packets each queue lost, since it was bound, before they
	// could be read.
	drops func() (map[uint16]uint64, error)
	current
}

// current is what was set or changed last.
type current struct {
	// order of the directions, and the rules that tell them apart.
	order []string
	ruled []classify.Rule
	// files that they follow.
	files files
	// dropped are the drops until they were set.
	dropped map[uint16]uint64
	// past are the counters of what was in force before a Change, by name.
	past map[string]impair.Counters
}

// Start opens the queues' socket and starts the data-path thread, in the
// network namespace of the process.
func Start() (*Engine, error) {
	// The thread must not stop for the collector; what the control side
	// allocates is bounded by a limit far above its need.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(128 << 20)
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
		socket: s, rules: rules, epoch: time.Now(),
		done: make(chan error, 1), acks: make(chan ack, acksMax),
		control: control{
			queues: map[string]uint16{}, bound: map[uint16]bool{}, drops: kernelDrops,
			current: current{past: map[string]impair.Counters{}},
		},
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
// before starts anew, its counters and its files too; packets under way keep their
// due times. An order that is refused changes nothing.
func (e *Engine) Set(directions []impair.Direction) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	dropped, err := e.drops()
	if err != nil {
		return err
	}
	if err := e.putLocked(directions, nil, files{}); err != nil {
		return err
	}
	clear(e.past)
	e.dropped = dropped
	e.gaps.reset()
	return nil
}

// Change puts exactly these directions into force, and those of a name that is
// there go on: they count on, and what waits for a rate goes before what comes.
// Packets under way keep their due times, so that later ones may overtake them.
// Files that are followed already are not read again. It tells the counters of what
// was in force until then.
func (e *Engine) Change(directions []impair.Direction) (map[string]impair.Counters, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := make(map[string]*direction, len(e.order))
	for _, name := range e.order {
		before[name] = e.table[e.queues[name]].Load()
	}
	err := e.putLocked(directions, before, e.files)
	e.changed.Store(true)
	if err != nil {
		return nil, err
	}
	if err := e.awaitTurns(); err != nil {
		return nil, err
	}
	missed, err := e.missedLocked()
	if err != nil {
		return nil, err
	}
	ended := make(map[string]impair.Counters, len(before))
	for name, d := range before {
		e.past[name] = e.past[name].Plus(d.snapshot(0))
		ended[name] = e.past[name].Plus(impair.Counters{Missed: missed[e.queues[name]]})
	}
	return ended, nil
}

// putLocked has directions follow those before, by name, with files that were
// followed before. Nothing is touched before all is ready.
func (e *Engine) putLocked(directions []impair.Direction, before map[string]*direction, known files) error {
	o, err := e.prepareLocked(directions, before, known.next())
	if err != nil {
		return err
	}
	for _, l := range o.links {
		if err := e.bindLocked(l); err != nil {
			return fmt.Errorf("link %s: %w", l.name, err)
		}
	}
	e.order, e.files = nil, o.files
	for _, l := range o.links {
		e.table[l.queue].Store(l.next)
		e.order = append(e.order, l.name)
	}
	if slices.Equal(o.rules, e.ruled) {
		return nil
	}
	e.ruled = nil
	if err := e.rules.Set(o.rules); err != nil {
		return err
	}
	e.ruled = o.rules
	return nil
}

// goOn has every direction go on from the one before it, which no packet may have
// done yet: it would keep the one before it, and that its own, for as long as the
// link is idle. The data path alone calls it.
func (e *Engine) goOn() {
	for i := range e.table {
		if d := e.table[i].Load(); d != nil {
			d.goOn()
		}
	}
}

// awaitTurns waits until the data path has begun a turn that sees the table as it
// is now: no direction that was in it before decides anything any more.
func (e *Engine) awaitTurns() error {
	const turns, pause = 2, 200 * time.Microsecond
	for from, patience := e.turns.Load(), ackWait; e.turns.Load() < from+turns; patience -= pause {
		if patience <= 0 {
			return errors.New("the link emulator stands still")
		}
		time.Sleep(pause)
	}
	return nil
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

func (e *Engine) bindLocked(l readyLink) error {
	messages := l.messages
	if e.bound[l.queue] {
		messages = messages[1:]
	}
	for _, m := range messages {
		if err := e.configureLocked(m); err != nil {
			return fmt.Errorf("bind NFQUEUE %d: %w", l.queue, err)
		}
	}
	e.bound[l.queue] = true
	return nil
}

// configureLocked sends one configuration message; its answer arrives at the
// data-path thread, which passes it on.
func (e *Engine) configureLocked(message []byte) error {
	e.asked = max(1, e.asked+1) // 0 is that of verdicts
	number(message, e.asked)
	if err := e.socket.send(message); err != nil {
		return err
	}
	for timeout := time.After(ackWait); ; {
		select {
		case a := <-e.acks:
			switch {
			case a.number != e.asked: // of one that was given up
			case a.code != 0:
				return unix.Errno(-a.code)
			default:
				return nil
			}
		case <-timeout:
			return errNoAnswer
		}
	}
}

// Counters of the directions in force, by name.
func (e *Engine) Counters() (map[string]impair.Counters, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missed, err := e.missedLocked()
	if err != nil {
		return nil, err
	}
	all := make(map[string]impair.Counters, len(e.order))
	for _, name := range e.order {
		q := e.queues[name]
		all[name] = e.past[name].Plus(e.table[q].Load().snapshot(missed[q]))
	}
	return all, nil
}

// missedLocked is how many packets each queue has lost since directions were set.
func (e *Engine) missedLocked() (map[uint16]uint64, error) {
	missed, err := e.drops()
	for q := range missed {
		missed[q] -= min(missed[q], e.dropped[q])
	}
	return missed, err
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
	text, err := os.ReadFile("/proc/self/net/netfilter/nfnetlink_queue")
	if err != nil {
		return nil, fmt.Errorf("read drops of NFQUEUE: %w", err)
	}
	queues, err := nfqueue.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read drops of NFQUEUE: %w", err)
	}
	drops := make(map[uint16]uint64, len(queues))
	for _, q := range queues {
		drops[q.Number] = q.Dropped
	}
	return drops, nil
}

// run is the data-path thread.
func (e *Engine) run(granted chan<- bool) {
	runtime.LockOSThread()
	granted <- MakeFIFO(0, Priority) == nil
	p := &path{engine: e, pending: newPending(pendingMax), parcels: newParcels(pendingMax, buffersMax), epoch: e.epoch}
	p.verdicts = make([]byte, 0, batch*verdictLen)
	e.done <- p.loop()
}

// MakeFIFO gives a thread a real-time priority; 0 is the calling one.
func MakeFIFO(thread int, priority uint32) error {
	return unix.SchedSetAttr(thread, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority,
	}, 0)
}

// BecomeNormal gives up that of the calling thread.
func BecomeNormal() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
}
