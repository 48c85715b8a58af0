package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Inside reports that this process is a guest's program.
func Inside() bool { return os.Getpid() == 1 }

// Prepare does what an init does first: it mounts what programs rely on, has a path
// to them, and loads the modules.
func Prepare() error {
	if err := os.Setenv("PATH", "/bin"); err != nil {
		return err
	}
	for _, mount := range []struct{ kind, target string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"},
	} {
		// The kernel may have mounted /dev itself.
		if err := unix.Mount(mount.kind, mount.target, mount.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", mount.target, err)
		}
	}
	order, err := os.ReadFile("/" + orderFile)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		if err := loadModule(path.Join("/", modulesFolder, name)); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

// NewRoot has the program, and what it starts, see the guest's files as those of a
// machine that was installed: a root that a container can leave by pivot_root, which
// the kernel's first is not, with the control groups of version 2.
func NewRoot() error {
	const over, root = "/over", "/over/root"
	if err := os.Mkdir(over, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", over, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", over, err)
	}
	for _, folder := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(path.Join(over, folder), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir=/over/upper,workdir=/over/work"); err != nil {
		return fmt.Errorf("mount %s: %w", root, err)
	}
	for _, mount := range []struct{ kind, target string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"}, {"tmpfs", "/var/lib"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		target := root + mount.target
		if err := errors.Join(os.MkdirAll(target, 0o755), unix.Mount(mount.kind, target, mount.kind, 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", mount.target, err)
		}
	}
	if err := os.MkdirAll(root+"/var/log", 0o755); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return os.Chdir(root) },
		func() error { return unix.Mount(".", "/", "", unix.MS_MOVE, "") },
		func() error { return unix.Chroot(".") },
		func() error { return os.Chdir("/") },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("enter %s: %w", root, err)
		}
	}
	return nil
}

func loadModule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if path.Ext(file) != ".ko" {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	return unix.FinitModule(int(f.Fd()), "", flags)
}

// End tells the host the exit code and ends the guest; QEMU does not start it
// anew. It does not return.
func End(out io.Writer, code int) {
	fmt.Fprintf(out, "%s%d\n", exitMark, code)
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		fmt.Fprintln(out, "end the guest:", err)
	}
	select {}
}
