package spec

import (
	"errors"
	"fmt"
)

// Capacity is what a node has for its pods, and tells the API server that it has;
// zero values stand for all that the machine has.
type Capacity struct {
	// MilliCPU is CPU time in thousandths of a core.
	MilliCPU int64
	// Memory in bytes, of which whole KiB count.
	Memory int64
}

// memoryLeast is what a node needs for a pod of the lab's own images, in bytes.
const memoryLeast = 32 << 20

var errLittle = errors.New("too little")

// check refuses what no machine can give.
func (c Capacity) check() error {
	switch {
	case c.MilliCPU < 0:
		return fmt.Errorf("%w: %d thousandths of a core", errLittle, c.MilliCPU)
	case c.Memory != 0 && c.Memory < memoryLeast:
		return fmt.Errorf("%w: %d bytes of memory, of which a pod needs %d MiB", errLittle, c.Memory, memoryLeast>>20)
	}
	return nil
}
