package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// ErrNoPod says that a pod has no process whose namespaces could be entered.
var ErrNoPod = errors.New("nothing runs in the pod")

// Run runs a program of the machine in a pod's network, by its names of DNS and with
// its host name, and waits until it ends: an image need not have a shell. Programs of
// the image itself are started by kubectl exec.
func (c *Cluster) Run(ctx context.Context, pod PodState, command host.Command) error {
	if pod.Pid == 0 {
		return fmt.Errorf("pod %s/%s/%s: %w", c.Name, pod.Namespace, pod.Name, ErrNoPod)
	}
	command.Node = pod.Node
	command.Enter = func() error { return enterPod(pod.Pid) }
	return c.lab.Run(ctx, command)
}

// enterPod has the calling thread, which is in a node, join the network and the host
// name of a process there, and see its resolv.conf.
func enterPod(pid int) error {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	resolv, err := os.ReadFile(filepath.Join(process, "root", resolvConf))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("enter pod: %w", err)
	}
	for _, namespace := range []struct {
		name string
		kind int
	}{{"net", unix.CLONE_NEWNET}, {"uts", unix.CLONE_NEWUTS}} {
		if err := join(filepath.Join(process, "ns", namespace.name), namespace.kind); err != nil {
			return fmt.Errorf("enter pod: %w", err)
		}
	}
	if len(resolv) == 0 {
		return nil
	}
	if err := seeResolvConf(resolv); err != nil {
		return fmt.Errorf("enter pod: %w", err)
	}
	return nil
}

func join(path string, kind int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Setns(int(f.Fd()), kind)
}

const resolvConf = "/etc/resolv.conf"

// seeResolvConf has the calling thread, and nobody else, see a text in the place of the
// machine's resolv.conf.
func seeResolvConf(text []byte) error {
	if _, err := os.Stat(resolvConf); errors.Is(err, fs.ErrNotExist) {
		return nil // the machine has no place for it
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	f, err := os.CreateTemp("/run", "skerry-*") // of the node
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the mount keeps it
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return unix.Mount(f.Name(), resolvConf, "", unix.MS_BIND, "")
}
