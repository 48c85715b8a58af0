package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// listed is what an archive has: folders with a slash, links with an arrow, files
// with their text.
func listed(t *testing.T, archive string) string {
	t.Helper()
	var all []string
	for from := tar.NewReader(strings.NewReader(archive)); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			all = append(all, header.Name+"->"+header.Linkname)
		case tar.TypeLink:
			all = append(all, header.Name+"=>"+header.Linkname)
		case tar.TypeReg:
			text, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, header.Name+"="+strings.TrimSpace(string(text)))
		default:
			all = append(all, header.Name)
		}
	}
}

// packageOf is the archive of a package.
func packageOf(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text = h.Linkname
			h.Linkname, h.Size = "", int64(len(text))
		}
		h.Mode = 0o755
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// Packages become one tree whose /bin is /usr/bin; what no pod looks at stays out.
func TestAddPackage(t *testing.T) {
	const file, dir, symlink, hard = tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink
	for _, c := range []struct {
		what     string
		packages [][]tar.Header
		want     string
	}{
		{
			"a program in /bin, and upstream's link to it from /usr/bin",
			[][]tar.Header{{{Typeflag: dir, Name: "./"}, {Typeflag: dir, Name: "./bin/"}, {Typeflag: file, Name: "./bin/touch", Linkname: "x"}, {Typeflag: symlink, Name: "./usr/bin/touch", Linkname: "/bin/touch"}}},
			"usr/bin/ usr/bin/touch=x",
		},
		{
			"the link before its program",
			[][]tar.Header{{{Typeflag: symlink, Name: "./usr/bin/touch", Linkname: "/bin/touch"}}, {{Typeflag: file, Name: "./bin/touch", Linkname: "x"}}},
			"usr/bin/touch=x",
		},
		{
			"links that begin at their folder",
			[][]tar.Header{{{Typeflag: symlink, Name: "./lib/a/libx.so", Linkname: "libx.so.1"}, {Typeflag: symlink, Name: "./sbin/y", Linkname: "../bin/y"}, {Typeflag: hard, Name: "./bin/z", Linkname: "./bin/y"}}},
			"usr/lib/a/libx.so->/lib/a/libx.so.1 usr/sbin/y->/bin/y usr/bin/z=>usr/bin/y",
		},
		{
			"two of one name: the first stays",
			[][]tar.Header{{{Typeflag: file, Name: "./etc/x", Linkname: "1"}}, {{Typeflag: file, Name: "./etc/x", Linkname: "2"}, {Typeflag: file, Name: "./etc/y", Linkname: "3"}}},
			"etc/x=1 etc/y=3",
		},
		{
			"names that lead out of the tree",
			[][]tar.Header{{{Typeflag: file, Name: "../../etc/x", Linkname: "1"}, {Typeflag: file, Name: "/bin/../../lib/y", Linkname: "2"}}},
			"etc/x=1 usr/lib/y=2",
		},
		{
			"what no pod looks at",
			[][]tar.Header{{{Typeflag: dir, Name: "./usr/share/doc/"}, {Typeflag: file, Name: "./usr/share/doc/x/README", Linkname: "1"}, {Typeflag: file, Name: "./usr/lib/a/gconv/x.so", Linkname: "2"}, {Typeflag: file, Name: "./usr/share/docs", Linkname: "3"}}},
			"usr/share/docs=3",
		},
	} {
		var layer strings.Builder
		made := newTree(&layer)
		for _, p := range c.packages {
			if err := made.addPackage(packageOf(t, p...)); err != nil {
				t.Fatal(err)
			}
		}
		if err := made.end(); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, layer.String()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	if err := newTree(io.Discard).addPackage(strings.NewReader(strings.Repeat("noise", 1000))); err == nil {
		t.Error("noise is a package")
	}
}
