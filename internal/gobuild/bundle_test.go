package gobuild

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
)

// bundleOf builds a program that says words, as a bundle.
func bundleOf(t *testing.T, b Builder) []byte {
	t.Helper()
	var bundle bytes.Buffer
	if err := b.Export(t.Context(), &bundle); err != nil {
		t.Fatal(err)
	}
	return bundle.Bytes()
}

// A machine without a go command runs what another has built.
func TestBundle(t *testing.T) {
	b := tiny(t, "brought")
	bundle := bundleOf(t, b)
	there := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: b.Catalogue}
	t.Setenv("PATH", t.TempDir())
	if _, ok := there.Find(t.Context(), "hey"); ok {
		t.Error("found before the import")
	}
	for range 2 { // a second import changes nothing
		if err := there.Import(bytes.NewReader(bundle)); err != nil {
			t.Fatal(err)
		}
	}
	path, err := there.Path(t.Context(), "hey")
	if err != nil || said(t, path) != "brought" {
		t.Errorf("%s, %v", path, err)
	}
	if found, ok := there.Find(t.Context(), "hey"); !ok || found != path {
		t.Errorf("found %s, not %s", found, path)
	}
	if left, err := filepath.Glob(filepath.Join(there.Dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("the cache has %v, %v", left, err)
	}
}

// A bundle of another catalogue, of other bytes or of half of them leaves nothing.
func TestBundleRefused(t *testing.T) {
	b := tiny(t, "one")
	bundle := bundleOf(t, b)
	other := tiny(t, "two")
	repacked := func(change func(name, text string) string) []byte { return repack(t, bundle, change) }
	for _, c := range []struct {
		name, want string
		builder    Builder
		bundle     []byte
	}{
		{"of other pins", "its hey v0.1.4 is not as this skerry pins it (v0.1.4)", other, bundle},
		{"empty", "it does not begin with bundle.json", b, nil},
		{"of noise", "it does not begin with bundle.json", b, []byte(strings.Repeat("noise", 1000))},
		{"half", "hey cannot be read: unexpected EOF", b, bundle[:len(bundle)-len(bundle)/4]},
		{"for another processor", "its programs are for vax", b, repacked(func(name, text string) string {
			return strings.Replace(text, `"arch": "`, `"arch": "vax`, 1)
		})},
		{"with other bytes", "hey has the digest ", b, repacked(func(name, text string) string {
			if name == "hey" {
				return strings.Replace(text, "one", "two", 1)
			}
			return text
		})},
		{"without its program", "it has no hey", b, repacked(func(name, text string) string {
			return strings.Replace(text, `"name": "hey"`, `"name": "hoy"`, 1)
		})},
	} {
		to := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: c.builder.Catalogue}
		err := to.Import(bytes.NewReader(c.bundle))
		if refused, ok := errors.AsType[*BundleError](err); !ok || !strings.Contains(err.Error(), c.want) || refused.Hint == "" {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if left, err := filepath.Glob(filepath.Join(to.Dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", c.name, left, err)
		}
	}
}

// A disk that is full is told as that: the bundle is not to be copied again.
func TestImportToAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a file system is mounted")
	}
	b := tiny(t, "large")
	bundle := bundleOf(t, b)
	to := Builder{Dir: t.TempDir(), Catalogue: b.Catalogue}
	err := thread.Do(func() error {
		err := errors.Join(
			unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", to.Dir, "tmpfs", 0, "size=64k"))
		if err != nil {
			return err
		}
		return to.Import(bytes.NewReader(bundle))
	})
	if _, refused := errors.AsType[*BundleError](err); refused || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

// repack changes the files of a bundle.
func repack(t *testing.T, bundle []byte, change func(name, text string) string) []byte {
	t.Helper()
	in, err := zstd.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var changed bytes.Buffer
	out, err := zstd.NewWriter(&changed)
	if err != nil {
		t.Fatal(err)
	}
	from, to := tar.NewReader(in), tar.NewWriter(out)
	for {
		header, err := from.Next()
		if err != nil {
			break
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(from); err != nil {
			t.Fatal(err)
		}
		data := change(header.Name, text.String())
		header.Size = int64(len(data))
		if err := errors.Join(to.WriteHeader(header), writeAll(to, []byte(data))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return changed.Bytes()
}

// Whatever a bundle holds, importing it ends, and leaves the catalogue's programs
// or nothing.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"arch":"amd64","programs":[{"name":"hey","size":3}]}`), "hey", []byte("abc"))
	f.Fuzz(func(t *testing.T, manifest []byte, name string, program []byte) {
		var bundle bytes.Buffer
		out, err := zstd.NewWriter(&bundle)
		if err != nil {
			t.Fatal(err)
		}
		to := tar.NewWriter(out)
		_ = to.WriteHeader(&tar.Header{Name: manifestFile, Size: int64(len(manifest))})
		_, _ = to.Write(manifest)
		_ = to.WriteHeader(&tar.Header{Name: name, Size: int64(len(program))})
		_, _ = to.Write(program)
		_ = errors.Join(to.Close(), out.Close())
		b := Builder{Dir: filepath.Join(t.TempDir(), "programs"), Catalogue: pinOf("v0.1.4", "", "")}
		err = b.Import(bytes.NewReader(bundle.Bytes()))
		left, _ := filepath.Glob(filepath.Join(b.Dir, "*"))
		if err != nil && len(left) > 0 {
			t.Errorf("%v leaves %v", err, left)
		}
	})
}
