package load

// How a load waits. All threads of a load share one core: each is a coroutine
// (iter.Pull) that runs until it has to wait, for its socket or for a time, and
// then hands back to the loop, which sleeps in epoll until one of them can go
// on. Between an event and the code that it concerns lie no queue, no lock and
// no wake-up of another OS thread, which would be charged to the system under
// test: on an idle virtual machine one costs some 100 µs.
//
// There are no locks because nothing here runs at the same time as anything
// else, but for the end of ctx, which writes to an eventfd.

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
)

// eventsMax is how many events the loop takes from epoll at once.
const eventsMax = 64

// Values of an event beside the numbers of routines.
const (
	eventTimer = -1
	eventStop  = -2
)

// never is a time that does not come.
const never = math.MaxInt64

// errStopped ends what a routine waits for when ctx has ended.
var errStopped = errors.New("stopped")

// wake is why a routine goes on.
type wake int

const (
	woken wake = iota
	expired
	stopped
)

// loop runs routines until all have returned.
type loop struct {
	watch    stopWatch
	routines []*routine
	// asleep has every routine that has not returned, by when it is to be woken.
	asleep timers
	ended  bool

	epoll, timer, stop int // descriptors
	// armed is when timer fires, 0 if it does not.
	armed int64
}

// routine is one coroutine of a loop. Outside of its own code it is always
// within wait.
type routine struct {
	loop   *loop
	number int32
	socket *socket // nil without a connection
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	// at is when it is to be woken, place its index in asleep.
	at    int64
	place int
	cause wake
}

// newLoop makes a loop whose routines stop waiting when ctx ends. The caller
// releases it after run.
func newLoop(ctx context.Context) (l *loop, release func(), err error) {
	l = &loop{watch: newStopWatch(), epoll: -1, timer: -1, stop: -1}
	if err := l.open(); err != nil {
		l.close()
		return nil, nil, err
	}
	told := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(told)
		// An eventfd takes this write, and only a closed one refuses it.
		_, _ = unix.Write(l.stop, binary.NativeEndian.AppendUint64(nil, 1))
	})
	return l, func() {
		if !forget() {
			<-told
		}
		l.close()
	}, nil
}

func (l *loop) open() (err error) {
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("make epoll: %w", err)
	}
	// A timer's expiry is exact, where a timeout of epoll has milliseconds and
	// the thread's timer slack.
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("make timer: %w", err)
	}
	if l.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("make eventfd: %w", err)
	}
	return errors.Join(l.watchFor(l.timer, eventTimer, unix.EPOLLIN), l.watchFor(l.stop, eventStop, unix.EPOLLIN))
}

func (l *loop) close() {
	for _, fd := range []int{l.epoll, l.timer, l.stop} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing was written to it
		}
	}
}

// watchFor has epoll report changes of a descriptor under a value.
func (l *loop) watchFor(fd int, value int32, events uint32) error {
	event := unix.EpollEvent{Events: events | unix.EPOLLET, Fd: value}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("watch a descriptor: %w", err)
	}
	return nil
}

// start adds a routine that begins when the loop runs.
func (l *loop) start(body func(*routine)) {
	r := &routine{loop: l, number: int32(len(l.routines))}
	r.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		body(r)
	})
	l.routines = append(l.routines, r)
	heap.Push(&l.asleep, r)
}

// run returns when every routine has.
func (l *loop) run() error {
	defer l.finish()
	var events [eventsMax]unix.EpollEvent
	l.expire()
	for len(l.asleep) > 0 {
		if err := l.arm(); err != nil {
			return err
		}
		n, err := unix.EpollWait(l.epoll, events[:], -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for sockets: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			l.take(e)
			// After each, so that a busy socket does not delay what is due.
			l.expire()
		}
	}
	return nil
}

func (l *loop) take(e unix.EpollEvent) {
	switch e.Fd {
	case eventTimer:
		l.armed = 0
	case eventStop:
		l.finish()
	default:
		if r := l.routines[e.Fd]; r.socket != nil {
			r.socket.note(e.Events)
			if r.socket.awaited {
				l.wake(r, woken)
			}
		}
	}
}

// finish ends every routine.
func (l *loop) finish() {
	l.ended = true
	for len(l.asleep) > 0 {
		l.wake(l.asleep[0], stopped)
	}
}

// expire wakes who is due.
func (l *loop) expire() {
	for len(l.asleep) > 0 && l.asleep[0].at <= l.watch.now() {
		l.wake(l.asleep[0], expired)
	}
}

// wake lets a routine run until it waits again or returns.
func (l *loop) wake(r *routine, why wake) {
	r.cause = why
	if _, more := r.resume(); !more {
		heap.Remove(&l.asleep, r.place)
	}
}

// arm sets the timer to the earliest time, unless it fires before that anyway:
// deadlines move on with every request and are hardly ever met.
func (l *loop) arm() error {
	at := l.asleep[0].at
	if at == never || l.armed != 0 && l.armed <= at {
		return nil
	}
	l.armed = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at, 1))}
	if err := unix.TimerfdSettime(l.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

// wait suspends the routine until another wakes it or a time of CLOCK_MONOTONIC.
func (r *routine) wait(until int64) wake {
	if r.loop.ended {
		return stopped
	}
	if r.at != until {
		r.at = until
		heap.Fix(&r.loop.asleep, r.place)
	}
	r.yield(struct{}{})
	return r.cause
}

// sleep suspends the routine for a time, and reports whether the loop goes on.
func (r *routine) sleep(d time.Duration) bool {
	if d <= 0 {
		return !r.loop.ended
	}
	return r.sleepUntil(r.loop.watch.now() + int64(d))
}

func (r *routine) sleepUntil(at int64) bool {
	for r.loop.watch.now() < at {
		if r.wait(at) == stopped {
			return false
		}
	}
	return !r.loop.ended
}

// timers is a heap of routines by the time at which they are to be woken.
type timers []*routine

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	r := x.(*routine)
	r.place = len(*t)
	*t = append(*t, r)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(*t) - 1
	r := (*t)[last]
	*t = (*t)[:last]
	return r
}

// stopWatch reads CLOCK_MONOTONIC as package time does, without a system call,
// which would take a quarter of a microsecond each time.
type stopWatch struct {
	origin time.Time
	ns     int64 // of CLOCK_MONOTONIC at the origin
}

// newStopWatch takes the tightest of some pairs of readings: the two clocks are
// one, so what they differ by stays.
func newStopWatch() stopWatch {
	const tries = 20
	var best stopWatch
	tightest := int64(never)
	for range tries {
		before := clock.Mono()
		origin := time.Now()
		after := clock.Mono()
		if gap := after - before; gap < tightest {
			tightest, best = gap, stopWatch{origin, before + gap/2}
		}
	}
	return best
}

func (w stopWatch) now() int64 { return w.ns + int64(time.Since(w.origin)) }
