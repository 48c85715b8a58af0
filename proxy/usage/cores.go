package usage

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Cores are those of the machine, and not only those that this process may run on: under the
// kubelet's static CPU manager pods have cores that no other may use.
func Cores() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if n := coresIn(string(text)); err == nil && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// coresIn is how many a list of the kernel's has, such as 0-3,8; 0 where it is none.
func coresIn(list string) (sum int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || to < from {
			return 0
		}
		sum += to - from + 1
	}
	return sum
}
