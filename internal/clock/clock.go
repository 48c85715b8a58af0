// Package clock reads the kernel's clocks as nanoseconds, so that rows taken
// by different processes of one machine can be compared; package time hides
// the monotonic one. It does not sleep and it converts nothing. It works on
// Linux alone. Start at Mono.
package clock

import "golang.org/x/sys/unix"

// Mono is CLOCK_MONOTONIC in ns: it never steps, and every process of the
// machine sees the same value. Good for the time between two events.
func Mono() int64 { return read(unix.CLOCK_MONOTONIC) }

// Real is CLOCK_REALTIME in ns since 1970: the clock of the kernel's packet
// timestamps. It may step.
func Real() int64 { return read(unix.CLOCK_REALTIME) }

// TAI is CLOCK_TAI in ns since 1970: Real without leap seconds, where somebody has told the
// kernel how many there were; else the same.
func TAI() int64 { return read(unix.CLOCK_TAI) }

// Thread is the CPU time in ns that the calling OS thread has used. A caller
// that takes differences holds runtime.LockOSThread in between.
func Thread() int64 { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

func read(id int32) int64 {
	var t unix.Timespec
	// Linux has had these clocks since 3.10, so an error is our own bug.
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("clock_gettime: " + err.Error())
	}
	return t.Nano()
}
