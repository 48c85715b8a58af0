package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// tree is a layer of an image under construction: the first file of a name is the
// one that stays. As on any Debian of today /bin, /sbin and /lib are links into
// /usr, whatever an older package says.
type tree struct {
	w    *tar.Writer
	seen map[string]bool
}

func newTree(w io.Writer) *tree { return &tree{tar.NewWriter(w), map[string]bool{}} }

// merged are the folders that lie in /usr.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// dispensable are what no pod looks at: the prefixes of their names.
var dispensable = []string{
	"etc/init.d/", "usr/share/bash-completion/", "usr/share/bug/", "usr/share/debconf/", "usr/share/doc/", "usr/share/i18n/", "usr/share/info/",
	"usr/share/lintian/", "usr/share/locale/", "usr/share/man/", "usr/share/perl5/", "usr/share/zoneinfo/", "var/cache/", "var/lib/dpkg/",
}

// place is where a file of a package comes to lie; empty for the root.
func place(name string) string {
	name = strings.Trim(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(merged, first) {
		return "usr/" + name
	}
	return name
}

// addPackage copies the files of a package.
func (t *tree) addPackage(files io.Reader) error {
	for from := tar.NewReader(files); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			// What a writer pads its end with is left to be read.
			_, err = io.Copy(io.Discard, files)
			return err
		}
		if err != nil {
			return err
		}
		to := place(header.Name)
		if to == "" || !wanted(to) {
			continue
		}
		made := tar.Header{
			Typeflag: header.Typeflag, Name: to, Mode: header.Mode, Uid: header.Uid, Gid: header.Gid,
			Size: header.Size, ModTime: header.ModTime, Linkname: header.Linkname,
		}
		switch header.Typeflag {
		case tar.TypeLink:
			made.Linkname = place(header.Linkname)
		case tar.TypeSymlink:
			if !path.IsAbs(made.Linkname) { // the folder that it begins at may have moved
				made.Linkname = path.Join("/", path.Dir(header.Name), made.Linkname)
			}
			if place(made.Linkname) == to { // from one merged folder to the other
				continue
			}
		}
		if err := t.add(made, from); err != nil {
			return err
		}
	}
}

// wanted says whether a pod may look at a file, of which translations and tables of
// other character sets are the largest.
func wanted(name string) bool {
	for _, prefix := range dispensable {
		if strings.HasPrefix(name+"/", prefix) {
			return false
		}
	}
	return !strings.Contains(name+"/", "/gconv/")
}

// add writes a file unless there is one of its name.
func (t *tree) add(header tar.Header, content io.Reader) error {
	if t.seen[header.Name] {
		return nil
	}
	t.seen[header.Name] = true
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := t.w.WriteHeader(&header); err != nil {
		return fmt.Errorf("%s: %w", header.Name, err)
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(t.w, content)
	return err
}

func (t *tree) addText(name string, mode int64, text string) error {
	return t.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text))}, strings.NewReader(text))
}

func (t *tree) addDir(name string, mode int64) error {
	return t.add(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, nil)
}

func (t *tree) addLink(name, to string) error {
	return t.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Mode: 0o777, Linkname: to}, nil)
}

// addFile copies a file of the machine.
func (t *tree) addFile(name string, mode int64, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return t.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}, f)
}

// end ends the archive.
func (t *tree) end() error { return t.w.Close() }
