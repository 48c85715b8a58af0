package userspace

import "time"

// A thread of real-time priority that has its core for more than 95 % of a second the
// kernel stops until the next (sched_rt_runtime_us; sched(7)). So it rests for restFor when
// it has worked for workMax, and each moment of rest pays for restPays as much work.
const (
	workMax  = 900 * time.Microsecond
	restFor  = 50 * time.Microsecond
	restPays = 18 // 5.3 % of all time
)

// work is how much a thread has worked without rest, on the engine's clock.
type work struct {
	// unpaid work up to when it rested last; below 0 where it has rested for more.
	unpaid, rested int64
}

// due says that it is to rest.
func (w *work) due(now int64) bool { return w.unpaid+now-w.rested > int64(workMax) }

// rest takes a rest that was. Of a long one no more counts than pays for workMax.
func (w *work) rest(from, until int64) {
	w.unpaid = max(w.unpaid+from-w.rested-restPays*(until-from), -int64(workMax))
	w.rested = until
}
