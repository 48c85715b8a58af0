package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHz is the unit of /proc/stat as every architecture of Linux shows it to
// user space (USER_HZ, proc(5)).
const userHz = 100

var errNoSteal = errors.New("/proc/stat has no steal time")

// Steal is the CPU time since boot that the hypervisor has given to others, of
// all cores together, in steps of 10 ms.
func Steal() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read steal time: %w", err)
	}
	return parseSteal(string(text))
}

// parseSteal reads the first line: "cpu user nice system idle iowait irq softirq
// steal …".
func parseSteal(stat string) (time.Duration, error) {
	const stealField = 8
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= stealField || fields[0] != "cpu" {
		return 0, errNoSteal
	}
	ticks, err := strconv.ParseUint(fields[stealField], 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoSteal, err)
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}
