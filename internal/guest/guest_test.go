package guest

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// test/guest boots a guest; here is what can be told without one.
func TestNeedsNamesWhatIsMissing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("PATH", folder)
	want := func(what, hint string) {
		t.Helper()
		err := Needs()
		var missing *MissingError
		if !errors.As(err, &missing) || !strings.Contains(missing.What, what) || !strings.Contains(err.Error(), hint) {
			t.Errorf("got %v, want that %s is missing, and %s", err, what, hint)
		}
		if run := (Machine{}).Run(t.Context(), &bytes.Buffer{}); !errors.As(run, &missing) || run.Error() != err.Error() {
			t.Errorf("a run says %v, want %v", run, err)
		}
	}
	want("qemu-system-x86_64", "apt-get install")
	write(t, filepath.Join(folder, "qemu-system-x86_64"), "#!/bin/sh\n")
	want("kernel", "test/guest/fetch.sh")
	write(t, filepath.Join(folder, "skerry", "guest", "kernel", "vmlinuz"), "")
	if err := Needs(); err != nil {
		t.Error("nothing is missing, but", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Something that stands for QEMU says what a guest would.
func TestRunTellsHowTheProgramEnded(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	kernel := filepath.Join(folder, "skerry", "guest", "kernel")
	write(t, filepath.Join(kernel, "vmlinuz"), "")
	program := filepath.Join(folder, "program")
	write(t, program, "")
	var dependencies strings.Builder
	for _, m := range modules {
		dependencies.WriteString(m + ".ko:\n")
		write(t, filepath.Join(kernel, "modules", m+".ko"), "")
	}
	write(t, filepath.Join(kernel, "modules", "modules.dep"), dependencies.String())
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		name, does, want string
		failed           bool
	}{
		{"well", `printf 'hello\r\nguest: ex'; printf 'it 0\r\n'`, "", false},
		{"badly", `echo "guest: exit 2"`, "guest failed: its program ended by 2", true},
		{"early", `echo "guest: exit"`, "guest failed: it ended before its program did", true},
		{"not at all", `exit 3`, "run the guest: exit status 3", false},
	} {
		write(t, filepath.Join(folder, "qemu-system-x86_64"), "#!/bin/sh\n"+c.does+"\n")
		var said bytes.Buffer
		err := Machine{Init: program}.Run(t.Context(), &said)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || errors.Is(err, ErrFailed) != c.failed {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if c.name == "well" && said.String() != "hello\nguest: exit 0\n" {
			t.Errorf("said %q", &said)
		}
	}
}

// A guest repeats what it did, be it large.
func TestHardware(t *testing.T) {
	small, large := strings.Join(Machine{}.hardware(), " "), strings.Join(Machine{Large: true}.hardware(), " ")
	for _, hardware := range []string{small, large} {
		if !strings.Contains(hardware, "-icount") || !strings.Contains(hardware, "clock=vm") || strings.Contains(hardware, "kvm") {
			t.Errorf("a guest's hardware is %s", hardware)
		}
	}
	if small == large {
		t.Errorf("a large guest has %s", large)
	}
}

// A program comes with all that it takes to start it, each file once and behind its
// folder. It starts where nothing else is.
func TestProgramsComeWithTheirLibraries(t *testing.T) {
	var packed bytes.Buffer
	archive := &cpio{w: &packed}
	archive.folder("bin")
	for _, name := range []string{"sh", "sleep", "sh"} {
		if err := errors.Join(archive.program(t.Context(), name), archive.err); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{".": true}
	root := t.TempDir()
	for name, content := range unpack(t, packed.Bytes()) {
		if seen[name] || !seen[path.Dir(name)] {
			t.Errorf("%s is there twice, or before its folder", name)
		}
		seen[name] = true
		if content != nil {
			write(t, filepath.Join(root, name), string(content))
		}
	}
	if !seen["bin/sh"] || !seen["bin/sleep"] {
		t.Fatalf("packed are %v", seen)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: a program is started in a root of its own")
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 0 && echo started")
	cmd.Dir, cmd.Env = "/", []string{"PATH=/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if said, err := cmd.CombinedOutput(); err != nil || string(said) != "started\n" {
		t.Errorf("in a root with nothing but the programs: %q, %v", said, err)
	}
}

// unpack goes through the files of an archive in their order; a folder has no
// content, not even an empty one.
func unpack(t *testing.T, archive []byte) iter.Seq2[string, []byte] {
	const header, modeAt, sizeAt, nameAt, folderMode = 110, 14, 54, 94, 0o040000
	number := func(at int) int {
		n, err := strconv.ParseUint(string(archive[at:at+8]), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	padded := func(n int) int { return (n + 3) &^ 3 }
	return func(yield func(string, []byte) bool) {
		for len(archive) > 0 {
			mode, size, name := number(modeAt), number(sizeAt), number(nameAt)
			content := archive[padded(header+name):][:size]
			if mode&folderMode != 0 {
				content = nil
			}
			if !yield(string(archive[header:header+name-1]), content) {
				return
			}
			archive = archive[padded(header+name)+padded(size):]
		}
	}
}

func TestProgramsThatCannotCome(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	write(t, filepath.Join(folder, "script"), "#!/bin/sh\n")
	archive := &cpio{w: &bytes.Buffer{}}
	if err := archive.program(t.Context(), "script"); err == nil || !strings.Contains(err.Error(), "find libraries of script") {
		t.Errorf("a script: %v", err)
	}
	var missing *MissingError
	if err := archive.program(t.Context(), "nonesuch"); !errors.As(err, &missing) || missing.What != "no nonesuch on the path" {
		t.Errorf("a program that is not here: %v", err)
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

// The format is that of linux/Documentation/driver-api/early-userspace: a magic
// number, 13 fields of 8 hexadecimal digits, the name and the content, each padded
// to 4 bytes.
func TestCpio(t *testing.T) {
	var archive bytes.Buffer
	c := &cpio{w: &archive}
	c.add("etc", 0o040755, nil)
	c.add("init", 0o100755, []byte("three"))
	want := strings.Join([]string{
		"070701", "00000001", "000041ed", "00000000", "00000000", "00000001", "00000000", "00000000",
		"00000000", "00000000", "00000000", "00000000", "00000004", "00000000", "etc\x00\x00\x00",
		"070701", "00000002", "000081ed", "00000000", "00000000", "00000001", "00000000", "00000005",
		"00000000", "00000000", "00000000", "00000000", "00000005", "00000000", "init\x00\x00", "three\x00\x00\x00",
	}, "")
	if got := archive.String(); c.err != nil || got != want {
		t.Errorf("got  %q, %v\nwant %q", got, c.err, want)
	}
}
