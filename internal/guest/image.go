package guest

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// modulesFolder holds the modules in the guest, and their order.
	modulesFolder = "lib/modules"
	orderFile     = modulesFolder + "/order"
)

// modules that the guest loads: those of links, and a device of systems/wireguard.
// What they depend on is loaded before them.
var modules = []string{
	"veth", "bridge", "br_netfilter", "sch_netem", "sch_prio", "sch_tbf",
	"nf_tables", "nft_meta_bridge", "nft_compat", "nfnetlink_queue", "xt_NFQUEUE",
	"wireguard",
}

// writeImage packs the programs and the modules of a kernel. It does not compress
// them, since the guest is slow to unpack.
func (m Machine) writeImage(ctx context.Context, file, kernel string) (err error) {
	image, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	archive := &cpio{w: image}
	for _, folder := range []string{"dev", "proc", "sys", "tmp", "run", "etc", "bin", "lib", modulesFolder} {
		archive.folder(folder)
	}
	archive.add("etc/hosts", 0o100644, nil)
	if err := archive.file("init", m.Init); err != nil {
		return err
	}
	for _, name := range m.Programs {
		if err := archive.program(ctx, name); err != nil {
			return err
		}
	}
	for name, from := range m.Files {
		if err := archive.file(strings.TrimPrefix(name, "/"), from); err != nil {
			return err
		}
	}
	if err := archive.modules(filepath.Join(kernel, "modules"), slices.Concat(modules, m.Modules)); err != nil {
		return err
	}
	archive.add("TRAILER!!!", 0, nil)
	return archive.err
}

// program adds a program of this host, and the libraries that it is linked with at
// the places where its linker looks for them.
func (c *cpio) program(ctx context.Context, name string) error {
	file, err := exec.LookPath(name)
	if err != nil {
		return &MissingError{"no " + name + " on the path", "the guest's program starts it"}
	}
	libraries, err := linked(ctx, file)
	if err != nil {
		return fmt.Errorf("find libraries of %s: %w", name, err)
	}
	for _, library := range libraries {
		if err := c.file(strings.TrimPrefix(library, "/"), library); err != nil {
			return err
		}
	}
	return c.file(path.Join("bin", path.Base(file)), file)
}

// linked lists the libraries that the dynamic linker loads for a program, itself
// among them; none for a static one.
func linked(ctx context.Context, file string) (libraries []string, err error) {
	program, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	if !slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, nil
	}
	said, err := exec.CommandContext(ctx, "ldd", file).Output()
	for word := range strings.FieldsSeq(string(said)) {
		if path.IsAbs(word) {
			libraries = append(libraries, word)
		}
	}
	return libraries, err
}

// modules adds modules, and the order in which they are loaded.
func (c *cpio) modules(folder string, wanted []string) error {
	dependencies, err := os.ReadFile(filepath.Join(folder, "modules.dep"))
	if err != nil {
		return err
	}
	order, err := loadOrder(string(dependencies), wanted)
	if err != nil {
		return err
	}
	var names strings.Builder
	for _, module := range order {
		if err := c.file(path.Join(modulesFolder, path.Base(module)), filepath.Join(folder, module)); err != nil {
			return err
		}
		fmt.Fprintln(&names, path.Base(module))
	}
	c.add(orderFile, 0o100644, []byte(names.String()))
	return nil
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
	// names that are in it.
	names map[string]bool
	err   error
}

// folder adds a folder behind those that it lies in, unless it is there.
func (c *cpio) folder(name string) {
	if name == "." || c.names[name] {
		return
	}
	c.folder(path.Dir(name))
	c.add(name, 0o040755, nil)
}

// file adds a file of this host, unless one of the name is there.
func (c *cpio) file(name, from string) error {
	if c.names[name] {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	c.folder(path.Dir(name))
	c.add(name, 0o100755, content)
	return nil
}

func (c *cpio) add(name string, mode uint32, content []byte) {
	c.files++
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name] = true
	const links = 1
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
