package tick_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/tick"
)

// It ticks no sooner than it should, and who takes ticks late finds one, and not all.
func TestTicks(t *testing.T) {
	const every = 5 * time.Millisecond
	began := time.Now()
	ticker, err := tick.New(every)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		<-ticker.C
		if took := time.Since(began); took < time.Duration(n+1)*every {
			t.Errorf("tick %d after %v", n+1, took)
		}
	}
	time.Sleep(4 * every) // in which four are lost
	<-ticker.C
	late := time.Now()
	for range 3 { // the first may have been on its way
		<-ticker.C
	}
	if took := time.Since(late); took < every {
		t.Errorf("ticks that were lost come later: three within %v", took)
	}
	if err := ticker.Close(); err != nil {
		t.Error(err)
	}
}

// Closed, it does not tick, and says so where it is closed again.
func TestClose(t *testing.T) {
	ticker, err := tick.New(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-ticker.C
	if err := ticker.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ticker.C: // the one that nobody had taken
	default:
	}
	select {
	case <-ticker.C:
		t.Error("it ticks though it is closed")
	case <-time.After(5 * time.Millisecond):
	}
	if ticker.Close() == nil {
		t.Error("closed twice")
	}
}

// Of a time that is none there is no ticker.
func TestNever(t *testing.T) {
	if _, err := tick.New(-time.Second); err == nil {
		t.Error("it ticks backwards")
	}
}
