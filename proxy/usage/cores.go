package usage

import (
	"runtime"

	"k8s.io/utils/cpuset"
)

// Cores are those of the machine, and not only those that this process may run on: under the
// kubelet's static CPU manager pods have cores that no other may use.
func Cores() int {
	if n, err := cpuset.NumCPU(); err == nil && n > 0 {
		return n
	}
	return runtime.NumCPU()
}
