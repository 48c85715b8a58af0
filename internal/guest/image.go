package guest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
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

// modules that the guest loads: those of links. What they depend on is loaded
// before them.
var modules = []string{
	"veth", "bridge", "br_netfilter", "sch_netem", "sch_prio", "sch_tbf",
	"nf_tables", "nft_meta_bridge", "nft_compat", "nfnetlink_queue", "xt_NFQUEUE",
}

// writeImage packs the program and the modules of a kernel.
func writeImage(file, kernel, program string) error {
	dependencies, err := os.ReadFile(filepath.Join(kernel, "modules", "modules.dep"))
	if err != nil {
		return err
	}
	order, err := loadOrder(string(dependencies), modules)
	if err != nil {
		return err
	}
	init, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := &cpio{w: zip}
	for _, folder := range []string{"dev", "proc", "sys", "tmp", "run", "etc", "lib", modulesFolder} {
		archive.add(folder, 0o040755, nil)
	}
	archive.add("init", 0o100755, init)
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
