package gobuild

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	// manifestFile is the first file of a bundle.
	manifestFile = "bundle.json"
	manifestMax  = 1 << 20
)

// manifest says what a bundle holds.
type manifest struct {
	// Arch is the processor that the programs are for, as Go names it.
	Arch     string    `json:"arch"`
	Programs []bundled `json:"programs"`
}

// bundled is a program of a bundle, in a file of its name.
type bundled struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Place is the base name of its folder in a cache, which knows what it was made
	// of.
	Place  string `json:"place"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// BundleError says that a bundle cannot be taken in.
type BundleError struct{ Message, Hint string }

// Error tells what is wrong.
func (e *BundleError) Error() string { return "bundle: " + e.Message }

// Export writes all programs of the catalogue as one file, for machines without a
// compiler or a network: a tar archive, compressed by zstd. What the cache lacks is
// built first.
func (b Builder) Export(ctx context.Context, w io.Writer) (err error) {
	compressed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	archive := tar.NewWriter(compressed)
	contents := manifest{Arch: runtime.GOARCH}
	paths := map[string]string{}
	for _, name := range b.catalogue().Names() {
		if paths[name], err = b.Path(ctx, name); err != nil {
			return err
		}
		r, err := b.recipe(name)
		if err != nil {
			return err
		}
		one := bundled{Name: name, Version: r.version, Place: filepath.Base(r.place())}
		if one.Size, one.SHA256, err = measure(paths[name]); err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		contents.Programs = append(contents.Programs, one)
	}
	text, err := json.MarshalIndent(contents, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	err = errors.Join(archive.WriteHeader(&tar.Header{Name: manifestFile, Mode: 0o644, Size: int64(len(text))}), writeAll(archive, text))
	for _, one := range contents.Programs {
		if err == nil {
			err = pack(archive, one, paths[one.Name])
		}
		if err == nil {
			err = context.Cause(ctx)
		}
	}
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

func writeAll(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// measure gives the size and the SHA-256 of a file.
func measure(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return n, hex.EncodeToString(sum.Sum(nil)), err
}

func pack(archive *tar.Writer, one bundled, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := archive.WriteHeader(&tar.Header{Name: one.Name, Mode: 0o755, Size: one.Size}); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// Import takes the programs of a bundle into the cache, where they go before those
// that could be built. It takes all of them or none: the error of a bundle that is
// damaged, for another processor or made by a Skerry with other pins is a
// *BundleError.
func (b Builder) Import(r io.Reader) (err error) {
	compressed, err := zstd.NewReader(r)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer compressed.Close()
	archive := tar.NewReader(compressed)
	contents, err := readManifest(archive)
	if err != nil {
		return err
	}
	wanted, err := b.fits(contents)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(wanted[0].cache, 0o755); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	work, err := os.MkdirTemp(wanted[0].cache, "bundle-*.part")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for _, one := range contents.Programs {
		if err := unpack(archive, one, work); err != nil {
			return err
		}
	}
	for _, r := range wanted {
		if err := settle(filepath.Join(work, r.Name), r.given()); err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
	}
	return nil
}

// settle moves a program to its place, in the way of which an earlier one may be.
func settle(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func damaged(format string, args ...any) error {
	return &BundleError{Message: fmt.Sprintf(format, args...), Hint: "copy it again, or export it anew"}
}

func readManifest(archive *tar.Reader) (m manifest, err error) {
	header, err := archive.Next()
	if err != nil || header.Name != manifestFile {
		return manifest{}, damaged("it is none: it does not begin with %s", manifestFile)
	}
	text, err := io.ReadAll(io.LimitReader(archive, manifestMax))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return manifest{}, damaged("%s is not readable: %v", manifestFile, err)
	}
	return m, nil
}

// fits gives what to make of the bundle: all that the catalogue has, and nothing else.
func (b Builder) fits(m manifest) ([]recipe, error) {
	if m.Arch != runtime.GOARCH {
		return nil, &BundleError{fmt.Sprintf("its programs are for %s, this machine is %s", m.Arch, runtime.GOARCH), "export one on such a machine"}
	}
	const hint = "export it by the same version of skerry"
	var wanted []recipe
	for _, name := range b.catalogue().Names() {
		r, err := b.recipe(name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(m.Programs, func(one bundled) bool { return one.Name == name })
		if i < 0 {
			return nil, &BundleError{"it has no " + name, hint}
		}
		if one := m.Programs[i]; one.Place != filepath.Base(r.place()) {
			return nil, &BundleError{fmt.Sprintf("its %s %s is not as this skerry pins it (%s)", name, one.Version, r.version), hint}
		}
		wanted = append(wanted, r)
	}
	if len(m.Programs) != len(wanted) {
		return nil, &BundleError{"it has programs that are not known here", hint}
	}
	return wanted, nil
}

// unpack writes the next program of the archive, which must be what the manifest
// says.
func unpack(archive *tar.Reader, one bundled, work string) error {
	header, err := archive.Next()
	if err != nil {
		return damaged("it ends before %s: %v", one.Name, err)
	}
	if header.Name != one.Name || header.Size != one.Size {
		return damaged("%q of %d bytes stands where %s of %d is to", header.Name, header.Size, one.Name, one.Size)
	}
	f, err := os.OpenFile(filepath.Join(work, one.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), archive)
	err = errors.Join(err, f.Close())
	if ours, ok := errors.AsType[*fs.PathError](err); ok && ours.Path == f.Name() { // such as of a disk that is full
		return fmt.Errorf("bundle: %w", err)
	}
	if err != nil {
		return damaged("%s cannot be read: %v", one.Name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != one.SHA256 {
		return damaged("%s has the digest %s, not %s", one.Name, got, one.SHA256)
	}
	return nil
}
