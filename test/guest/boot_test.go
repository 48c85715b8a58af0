package guest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// bootTimeout bounds the guest's whole life.
	bootTimeout = 3 * time.Minute
	// exitMark begins the guest's last line, the exit code of its tests.
	exitMark = "guest: exit "
	// modulesFolder holds the modules in the guest, and their order.
	modulesFolder = "lib/modules"
	orderFile     = modulesFolder + "/order"
)

// modules that the guest loads; what they depend on is loaded before them.
var modules = []string{
	"veth", "bridge", "br_netfilter", "sch_netem", "sch_prio", "sch_tbf",
	"nf_tables", "nft_meta_bridge", "nft_compat", "nfnetlink_queue", "xt_NFQUEUE",
}

// bootGuest fails the test where the guest's tests fail, with what they said.
func bootGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a virtual machine, which takes half a minute")
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("no qemu-system-x86_64 on the path: apt-get install --no-install-recommends qemu-system-x86")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kernel := filepath.Join(cache, "skerry", "guest", "kernel")
	if _, err := os.Stat(filepath.Join(kernel, "vmlinuz")); err != nil {
		t.Skipf("no kernel for the guest in %s: test/guest/fetch.sh downloads it (with apt-get download)", kernel)
	}
	folder := t.TempDir()
	initrd := filepath.Join(folder, "initrd")
	if err := writeInitramfs(initrd, kernel, buildInit(t, folder)); err != nil {
		t.Fatal("write initramfs:", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-smp", "1", "-m", "1024",
		"-kernel", filepath.Join(kernel, "vmlinuz"), "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 -- -test.v -test.run=^TestGuest$")
	output, err := cmd.CombinedOutput()
	said := strings.ReplaceAll(string(output), "\r", "")
	if err != nil {
		t.Fatalf("run qemu: %v\n%s", err, said)
	}
	if !strings.Contains(said, exitMark+"0\n") {
		t.Fatalf("the guest's tests failed:\n%s", said)
	}
	t.Logf("the guest's tests:\n%s", said)
}

// buildInit builds this test once more, without libc.
func buildInit(t *testing.T, folder string) string {
	file := filepath.Join(folder, "init")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the guest's init: %v\n%s", err, output)
	}
	return file
}

// writeInitramfs packs init and the modules of a kernel.
func writeInitramfs(file, kernel, init string) error {
	dependencies, err := os.ReadFile(filepath.Join(kernel, "modules", "modules.dep"))
	if err != nil {
		return err
	}
	order, err := loadOrder(string(dependencies), modules)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := &cpio{w: zip}
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	for _, folder := range []string{"dev", "proc", "sys", "tmp", "run", "etc", "lib", modulesFolder} {
		archive.add(folder, 0o040755, nil)
	}
	archive.add("init", 0o100755, program)
	archive.add("etc/hosts", 0o100644, nil)
	var names strings.Builder
	for _, module := range order {
		content, err := os.ReadFile(filepath.Join(kernel, "modules", module))
		if err != nil {
			return err
		}
		archive.add(path.Join(modulesFolder, path.Base(module)), 0o100644, content)
		fmt.Fprintln(&names, path.Base(module))
	}
	archive.add(orderFile, 0o100644, []byte(names.String()))
	archive.add("TRAILER!!!", 0, nil)
	if err := errors.Join(archive.err, zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o600)
}

// loadOrder reads modules.dep: the files to load for some modules, each after
// those that it depends on.
func loadOrder(dependencies string, wanted []string) ([]string, error) {
	lines := map[string][]string{}
	for line := range strings.Lines(dependencies) {
		file, rest, found := strings.Cut(line, ":")
		if found {
			name, _, _ := strings.Cut(path.Base(file), ".ko")
			lines[name] = append([]string{file}, strings.Fields(rest)...)
		}
	}
	var order []string
	for _, name := range wanted {
		files, ok := lines[name]
		if !ok {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		// A line names the nearest dependency first.
		for _, file := range slices.Backward(files) {
			if !slices.Contains(order, file) {
				order = append(order, file)
			}
		}
	}
	return order, nil
}

// cpio writes an archive in the format that the kernel unpacks (newc).
type cpio struct {
	w     io.Writer
	files int
	err   error
}

func (c *cpio) add(name string, mode uint32, content []byte) {
	c.files++
	links := uint32(1)
	header := "070701"
	for _, field := range []uint32{
		uint32(c.files), mode, 0, 0, links, 0, uint32(len(content)), 0, 0, 0, 0, uint32(len(name) + 1), 0,
	} {
		header += fmt.Sprintf("%08x", field)
	}
	c.write([]byte(header + name + "\x00"))
	c.write(content)
}

// write pads to 4 bytes.
func (c *cpio) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(append(b[:len(b):len(b)], make([]byte, -len(b)&3)...))
	}
}

func TestLoadOrderPutsDependenciesFirst(t *testing.T) {
	const dependencies = "kernel/net/br_netfilter.ko: kernel/net/bridge.ko kernel/net/stp.ko kernel/net/llc.ko\n" +
		"kernel/net/bridge.ko: kernel/net/stp.ko kernel/net/llc.ko\n" +
		"kernel/net/veth.ko.xz:\n"
	order, err := loadOrder(dependencies, []string{"veth", "bridge", "br_netfilter"})
	if err != nil {
		t.Fatal(err)
	}
	want := "kernel/net/veth.ko.xz kernel/net/llc.ko kernel/net/stp.ko kernel/net/bridge.ko kernel/net/br_netfilter.ko"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := loadOrder(dependencies, []string{"sch_netem"}); err == nil {
		t.Error("a module that is not there makes no error")
	}
}
