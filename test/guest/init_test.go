package guest_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// prepareGuest does what an init does first.
func prepareGuest() error {
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
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
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

// powerOff ends the guest; QEMU does not start it anew.
func powerOff() {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		fmt.Println("end the guest:", err)
	}
	select {}
}
