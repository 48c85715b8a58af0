// Package userspace emulates links on kernels without sch_netem: packets wait
// in the kernel's NFQUEUE while one thread here decides when, and whether, each
// may go on. It reads payload only where a direction copies or alters packets,
// and holds that of those packets alone. It does not copy or alter super-packets:
// the kernel segments them before. Start at Start; the decision itself is
// stage.admit, the journey of a packet stands in path.go.
package userspace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
	"skerry.dev/skerry/lab/impair/recording"
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
	// A FIFO thread that never sleeps is throttled by the kernel for 50 ms a
	// second: it rests for restFor after at most busyMax.
	busyMax = 2 * time.Millisecond
	restFor = 50 * time.Microsecond
	// delayedMax bounds the time that the kernel may take from a packet's stamp to
	// the queue: a stamp from longer before all had been read means that the wall
	// clock was stepped.
	delayedMax = int64(time.Second)
	ackWait    = 2 * time.Second
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
	acks    chan int32

	// mu guards what only the control side uses.
	mu     sync.Mutex
	queues map[string]uint16
	bound  map[uint16]bool
	current
	// FIFO says whether the kernel granted real-time priority.
	FIFO bool
}

// current is what was set or changed last.
type current struct {
	// order of the directions, and the rules that tell them apart.
	order []string
	ruled []classify.Rule
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
		done: make(chan error, 1), acks: make(chan int32, 1),
		queues: map[string]uint16{}, bound: map[uint16]bool{}, current: current{past: map[string]impair.Counters{}},
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
	clear(e.past)
	err := e.putLocked(directions, nil)
	e.gaps.reset()
	return err
}

// Change puts exactly these directions into force, and those of a name that is
// there go on: they count on, and what waits for a rate goes before what comes.
// Packets under way keep their due times, so that later ones may overtake them.
// It tells the counters of what was in force until then.
func (e *Engine) Change(directions []impair.Direction) (map[string]impair.Counters, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := make(map[string]*direction, len(e.order))
	for _, name := range e.order {
		before[name] = e.table[e.queues[name]].Load()
	}
	err := e.putLocked(directions, before)
	e.changed.Store(true)
	if err != nil {
		return nil, err
	}
	if err := e.awaitTurns(); err != nil {
		return nil, err
	}
	missed, err := kernelDrops()
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

// putLocked has directions follow those before, by name. One that has never done
// anything needs no queue; one that only stops doing so keeps it.
func (e *Engine) putLocked(directions []impair.Direction, before map[string]*direction) error {
	var rules []classify.Rule
	e.order = e.order[:0]
	for _, d := range directions {
		if d.IsZero() && before[d.Name] == nil {
			if d.Exempts() {
				rules = append(rules, classify.Rule{Match: d.Match, Exempt: true})
			}
			continue
		}
		queue, err := e.queueLocked(d.Name)
		if err != nil {
			return err
		}
		stages := d.Stages()
		if err := recording.Fill(stages); err != nil {
			return fmt.Errorf("link %s: %w", d.Name, err)
		}
		next := newDirection(stages, d.Seed)
		if err := next.replay(int64(time.Since(e.epoch))); err != nil {
			return fmt.Errorf("link %s: %w", d.Name, err)
		}
		next.before = before[d.Name]
		e.table[queue].Store(next)
		if err := e.bindLocked(queue, stages, d.Unit); err != nil {
			return fmt.Errorf("link %s: %w", d.Name, err)
		}
		e.order = append(e.order, d.Name)
		rules = append(rules, classify.Rule{Match: d.Match, Queue: queue})
	}
	if slices.Equal(rules, e.ruled) {
		return nil
	}
	e.ruled = nil
	if err := e.rules.Set(rules); err != nil {
		return err
	}
	e.ruled = rules
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

func (e *Engine) bindLocked(queue uint16, stages impair.Stages, unit impair.Unit) error {
	length := uint32(copyRange)
	if stages.Copies() {
		length = copyWhole
	}
	messages := bindMessages(queue, !stages.SplitsPackets(unit), length, queueLength)
	if e.bound[queue] {
		messages = messages[1:]
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
		all[name] = e.past[name].Plus(e.table[q].Load().snapshot(missed[q]))
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
	p := &path{engine: e, pending: newPending(pendingMax), parcels: newParcels(pendingMax, buffersMax), epoch: e.epoch}
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
