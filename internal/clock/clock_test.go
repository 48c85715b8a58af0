package clock_test

import (
	"runtime"
	"testing"
	"time"

	"skerry.dev/skerry/internal/clock"
)

func TestMonoNeverGoesBack(t *testing.T) {
	last := clock.Mono()
	for range 1000 {
		now := clock.Mono()
		if now < last {
			t.Fatalf("CLOCK_MONOTONIC went from %d to %d", last, now)
		}
		last = now
	}
}

func TestRealIsTheWallClock(t *testing.T) {
	before := time.Now().UnixNano()
	got := clock.Real()
	after := time.Now().UnixNano()
	if got < before || got > after {
		t.Errorf("CLOCK_REALTIME %d lies outside [%d, %d] of package time", got, before, after)
	}
}

func TestThreadStandsStillWhileAsleep(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wall, cpu := clock.Mono(), clock.Thread()
	time.Sleep(20 * time.Millisecond)
	wall, cpu = clock.Mono()-wall, clock.Thread()-cpu
	if cpu > wall/2 {
		t.Errorf("a thread that slept for %d ns is charged %d ns of CPU", wall, cpu)
	}
}

func BenchmarkMono(b *testing.B) {
	for b.Loop() {
		clock.Mono()
	}
}
