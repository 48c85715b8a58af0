package usage

import "testing"

func TestCoresIn(t *testing.T) {
	for list, want := range map[string]int{"0\n": 1, "0-3\n": 4, "0-3,8,10-11\n": 7, "": 0, "3-1": 0, "0-x": 0, "0,,1": 0} {
		if got := coresIn(list); got != want {
			t.Errorf("%q: %d, not %d", list, got, want)
		}
	}
	if Cores() < 1 {
		t.Error("a machine without cores")
	}
}
