package quiet

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"
)

// A share is of all cores, and of the time between.
func TestSince(t *testing.T) {
	began := Moment{time.Unix(10, 0), time.Second}
	ended := Moment{time.Unix(12, 0), time.Second + time.Duration(runtime.NumCPU())*time.Second/2}
	if got := ended.Since(began); math.Abs(got-0.25) > 1e-9 {
		t.Errorf("got %f of 1, want 0.25", got)
	}
}

// A wait whose context has ended ends too, but on a machine that is its own.
func TestAwait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if is, err := Await(ctx); !is && !errors.Is(err, context.Canceled) {
		t.Errorf("got %t, %v", is, err)
	}
}
