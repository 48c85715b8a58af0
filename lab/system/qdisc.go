package system

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
)

// QdiscError says which queueing disciplines a system needs and this kernel lacks.
type QdiscError struct {
	System string
	Qdiscs []string
}

// Error names them.
func (e *QdiscError) Error() string {
	return fmt.Sprintf("system %s needs queueing disciplines that the kernel lacks: %s", e.System, strings.Join(e.Qdiscs, ", "))
}

// Hint is its remedy.
func (e *QdiscError) Hint() string {
	return fmt.Sprintf("modprobe -a sch_%s, or a kernel that has them, as Debian's", strings.Join(e.Qdiscs, " sch_"))
}

// KernelLacks says what the system needs of the kernel that it lacks, as a *QdiscError.
// What cannot be asked for, as without root, is not said to be lacking.
func (p *Plugin) KernelLacks() error {
	var lacks []string
	for _, kind := range p.Qdiscs {
		err := thread.InFreshNet(func() error {
			const loopback = 1
			at := netlink.QdiscAttrs{LinkIndex: loopback, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
			return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: at, QdiscType: kind})
		})
		if errors.Is(err, unix.ENOENT) { // of one that is there it wants options
			lacks = append(lacks, kind)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &QdiscError{p.Name, lacks}
}

// KernelLacks says what the stack needs of the kernel that it lacks.
func (s *Stack) KernelLacks() error {
	var lacks []error
	for _, p := range s.Plugins {
		lacks = append(lacks, p.KernelLacks())
	}
	return errors.Join(lacks...)
}
