package emulator

import (
	"encoding/binary"
	"fmt"
	"os"
)

// latencyFile takes the longest time, in us, that a CPU may need to wake up, for
// as long as it is held open (Linux, Documentation/power/pm_qos_interface.rst).
const latencyFile = "/dev/cpu_dma_latency"

// ProbeAwake says whether idle CPUs can be kept awake.
func ProbeAwake() error {
	f, err := keepAwake()
	if err != nil {
		return err
	}
	return f.Close()
}

// keepAwake has idle CPUs poll in place of sleeping until the file is closed,
// as cyclictest does. Waking a sleeping CPU takes tens of microseconds, and on
// virtual machines hundreds: more than the error that a link may have.
func keepAwake() (*os.File, error) {
	f, err := os.OpenFile(latencyFile, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep CPUs awake: %w", err)
	}
	if _, err := f.Write(binary.NativeEndian.AppendUint32(nil, 0)); err != nil {
		_ = f.Close() // the error that matters is that of the write
		return nil, fmt.Errorf("keep CPUs awake: %w", err)
	}
	return f, nil
}
