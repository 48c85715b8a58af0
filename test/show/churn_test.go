package main

import (
	"slices"
	"testing"
)

func TestDiffering(t *testing.T) {
	got := differing([]string{"a", "b", "d"}, []string{"b", "c", "d"})
	if want := []string{"- a", "+ c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := differing([]string{"a"}, []string{"a"}); got != nil {
		t.Errorf("got %v", got)
	}
}

// The machine's state is the same when looked at twice, but for what others do
// meanwhile: no entry is of what always changes.
func TestMachineState(t *testing.T) {
	if _, err := sysctlState(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/proc/sys/kernel/random/uuid": true, "/proc/sys/net/netfilter/nf_conntrack_count": true, "/proc/sys/vm/overcommit_memory": false,
	} {
		if got := moving(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
