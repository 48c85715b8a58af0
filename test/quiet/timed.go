package quiet

import (
	"fmt"
	"strings"
	"testing"
)

// robbed is the share of the cores' time from which on a test that holds measured times to
// bounds says nothing: what it saw was the hypervisor's doing.
const robbed = 0.1

// marker begins the line by which a test says that it was robbed.
const marker = "robbed: the hypervisor took"

// Timed has a test that holds measured times to bounds say so where it fails while a
// hypervisor takes the cores. Command unit tries it again, and fails for it only on cores
// that are its own.
func Timed(t testing.TB) {
	t.Helper()
	before, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after, err := Now()
		if err != nil {
			t.Error(err)
			return
		}
		if taken := after.Since(before); t.Failed() && taken >= robbed {
			t.Log(Mark(taken))
		}
	})
}

// Mark is the line of a test from which a share of the cores, of 1, was taken.
func Mark(taken float64) string {
	return fmt.Sprintf("%s %.0f%% of the cores", marker, 100*taken)
}

// Marked says whether a test has printed such a line.
func Marked(output string) bool { return strings.Contains(output, marker) }
