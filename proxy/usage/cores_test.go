package usage_test

import (
	"runtime"
	"testing"

	"skerry.dev/skerry/proxy/usage"
)

// The machine has no fewer cores than this process may run on.
func TestCores(t *testing.T) {
	if n := usage.Cores(); n < runtime.NumCPU() {
		t.Errorf("%d cores, of which %d are for this process", n, runtime.NumCPU())
	}
}
