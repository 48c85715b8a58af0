package quiet

import "testing"

// A test that passes says nothing, whatever was taken meanwhile.
func TestTimed(t *testing.T) {
	var inner *testing.T
	t.Run("passes", func(t *testing.T) {
		inner = t
		Timed(t)
	})
	if inner.Failed() {
		t.Error("it has failed")
	}
	if !Marked("x_test.go:1: "+Mark(0.34)) || Marked("x_test.go:1: a round trip takes 1s") {
		t.Errorf("no mark is %q", Mark(0.34))
	}
}
