package textfile_test

import (
	"errors"
	"testing"

	"skerry.dev/skerry/lab/impair/textfile"
)

// A file is opened once for as long as each round uses it, and anew after one that
// does not; an error is not kept.
func TestKept(t *testing.T) {
	opened := 0
	var wrong error
	open := func(string) (int, error) {
		opened++
		return opened, wrong
	}
	kept := textfile.Kept[int]{}.Next()
	want := func(when, name string, number int) {
		t.Helper()
		if got, err := kept.Open(name, open); err != nil || got != number {
			t.Errorf("%s: opening %s gives number %d, %v, want %d", when, name, got, err, number)
		}
	}
	want("first", "a", 1)
	want("again", "a", 1)
	want("another", "b", 2)
	kept = kept.Next()
	want("in the next round", "a", 1)
	kept = kept.Next()
	want("in the third", "a", 1)
	want("after a round without it", "b", 3)
	wrong = errors.New("gone")
	if _, err := kept.Open("c", open); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	wrong = nil
	want("after an error", "c", 5)
}
