package workload

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
)

// burn uses ?ms= milliseconds of CPU time and touches ?mb= megabytes (10^6
// bytes), held until the answer. Either may be left out.
func burn(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	d, err := parseMillis(orZero(q.Get("ms")), BurnMax)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	mb, err := parseNumber(orZero(q.Get("mb")), MemoryMax/1e6)
	if err != nil {
		http.Error(w, "mb: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := use(r.Context(), d, int(mb*1e6)); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

// use spends d of this thread's CPU time, the touching of size bytes included,
// so that a host short of CPU serves later and not less. It gives up with ctx.
func use(ctx context.Context, d time.Duration, size int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := clock.Thread() + int64(d)
	if size > 0 {
		// Mapped, not made: the collector would hand the memory back long
		// after the answer, and the node's use of RAM would not be M MB.
		memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("map %d bytes: %w", size, err)
		}
		defer func() { _ = unix.Munmap(memory) }()
		for i := 0; i < size; i += os.Getpagesize() {
			memory[i] = 1
		}
	}
	gone := ctx.Done()
	var x uint64
	for clock.Thread() < end {
		select {
		case <-gone:
			return nil
		default:
			x = spin(x)
		}
	}
	return nil
}

// spin is some 10 µs of work between two looks at the clock, which is a system
// call. It returns its result so that the compiler keeps it.
//
//go:noinline
func spin(x uint64) uint64 {
	const rounds = 1 << 14
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
