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
