package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// apartRole is to show what takes a network namespace of its own.
const apartRole = "apart"

// apart has this program show, in that role, what the data plane takes: in a network namespace
// which has loopback alone and goes with it.
func (b *bench) apart(ctx context.Context) error {
	c := exec.CommandContext(ctx, "/proc/self/exe", apartRole)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return fmt.Errorf("a network namespace, which takes root: %w", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		b.lines++
		if strings.HasPrefix(lines.Text(), failMark) {
			b.failed++
		}
		_, _ = fmt.Fprintln(b.out, lines.Text())
	}
	return c.Wait()
}

// serveApart is that role: lines that fail are told by what they say.
func serveApart(ctx context.Context, _ []string) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return showPlaneApart(ctx, &bench{out: os.Stdout})
}
