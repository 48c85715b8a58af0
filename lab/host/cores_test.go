package host

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLastOf(t *testing.T) {
	for _, c := range []struct {
		cores []int
		last  int
		err   error
	}{
		{[]int{0, 1}, 1, nil},
		{[]int{3, 64, 130}, 130, nil},
		{[]int{5}, 0, ErrCores},
		{nil, 0, ErrCores},
	} {
		var set unix.CPUSet
		for _, core := range c.cores {
			set.Set(core)
		}
		if last, err := lastOf(set); last != c.last || !errors.Is(err, c.err) {
			t.Errorf("of %v the last is %d, %v, want %d, %v", c.cores, last, err, c.last, c.err)
		}
	}
}
