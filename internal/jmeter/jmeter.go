// Package jmeter fetches Apache JMeter into a cache: the jars that a plan of HTTP
// requests needs, by Maven from a pinned pom, each checked against a pinned digest.
// They are laid out as a release of JMeter is. It starts no JMeter and downloads
// nothing by itself.
//
// To pin another version: change pom.xml and Version, fetch once by the command of
// Cache.fetch, and write jars.sum by sha256sum.
//
// Start at Cache.Path.
package jmeter

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Version that is pinned.
const Version = "5.5"

// ErrNoMaven says that there is no mvn command.
var ErrNoMaven = errors.New("there is no mvn command on the path")

// ErrDigest says that a jar is not the one that is pinned.
var ErrDigest = errors.New("not what is pinned")

//go:embed pom.xml
var pom []byte

//go:embed jars.sum
var jars []byte

const (
	// plugin copies the jars of a pom.
	plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
	// configMax bounds a file of JMeter's configuration.
	configMax = 1 << 20
	// keyDigits of a SHA-256 name what is in the cache.
	keyDigits = 12
	// linesMax of what Maven said are told.
	linesMax = 3
)

// Cache keeps JMeter. The zero Cache is in the user's, and silent.
type Cache struct {
	// Dir of the cache; by default skerry/programs in the user's, which
	// XDG_CACHE_HOME moves.
	Dir string
	// Tell hears a line before JMeter is fetched; nil for none.
	Tell func(line string)
}

// Path is JMeter's home, with bin and lib. It is fetched first where the cache
// lacks it, which takes half a minute and a network. The error is ErrNoMaven,
// ErrDigest, of the context, or has what Maven said.
func (c Cache) Path(ctx context.Context) (string, error) {
	home, err := c.home()
	if err != nil || isThere(home) {
		return home, err
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", fmt.Errorf("fetch jmeter: %w", err)
	}
	lock, err := os.OpenFile(home+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("fetch jmeter: %w", err)
	}
	defer func() { _ = lock.Close() }() // which lets go of it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("fetch jmeter: lock: %w", err)
	}
	if isThere(home) { // another process was faster
		return home, nil
	}
	if c.Tell != nil {
		c.Tell(fmt.Sprintf("fetching JMeter %s by Maven: it is not in %s; this happens once", Version, filepath.Dir(home)))
	}
	part := home + ".part"
	err = errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755))
	if err == nil {
		err = fetch(ctx, part)
	}
	if err == nil {
		err = lay(part)
	}
	if err == nil {
		err = os.Rename(part, home)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("fetch jmeter: %w", err), os.RemoveAll(part))
	}
	return home, nil
}

// Find is JMeter's home where it is in the cache already.
func (c Cache) Find() (string, bool) {
	home, err := c.home()
	return home, err == nil && isThere(home)
}

func isThere(home string) bool {
	_, err := os.Stat(Jar(home))
	return err == nil
}

// Jar is what java -jar starts, in JMeter's home.
func Jar(home string) string { return filepath.Join(home, "bin", "ApacheJMeter.jar") }

// home is named by what is pinned.
func (c Cache) home() (string, error) {
	dir := c.Dir
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("place for jmeter: %w", err)
		}
		dir = filepath.Join(cache, "skerry", "programs")
	}
	sum := sha256.Sum256(bytes.Join([][]byte{pom, jars}, nil))
	return filepath.Join(dir, fmt.Sprintf("jmeter-%s-%s", Version, hex.EncodeToString(sum[:])[:keyDigits])), nil
}

// fetch has Maven copy the jars into lib.
func fetch(ctx context.Context, part string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return ErrNoMaven
	}
	file := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(file, pom, 0o644); err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", file, plugin, "-DoutputDirectory="+filepath.Join(part, "lib"))
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("mvn: %w: %s", err, firstLines(said.String()))
	}
	return nil
}

// firstLines of what Maven said is wrong.
func firstLines(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "[ERROR]")); line != "" && len(lines) < linesMax {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// lay checks the jars and puts them where a release of JMeter has them.
func lay(part string) error {
	for _, dir := range []string{"bin", "lib/ext", "lib/junit"} {
		if err := os.MkdirAll(filepath.Join(part, dir), 0o755); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(jars))
	for lines.Scan() {
		digest, name, _ := strings.Cut(lines.Text(), "  ")
		from, to := filepath.Join(part, "lib", name), filepath.Join(part, "lib", name)
		switch {
		case name == "ApacheJMeter-"+Version+".jar":
			to = Jar(part)
		case strings.HasPrefix(name, "ApacheJMeter_"):
			to = filepath.Join(part, "lib", "ext", name)
		}
		if err := check(from, digest); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return unpack(filepath.Join(part, "lib", "ext", "ApacheJMeter_config-"+Version+".jar"), part)
}

func check(path, digest string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%w: its SHA-256 is %s", ErrDigest, got)
	}
	return nil
}

// unpack takes JMeter's own settings, the files of bin, out of their jar.
func unpack(jar, part string) error {
	z, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		name, inBin := strings.CutPrefix(f.Name, "bin/")
		if !inBin || name == "" || strings.Contains(name, "/") || f.UncompressedSize64 > configMax {
			continue // templates of reports and of plans
		}
		if err := extract(f, filepath.Join(part, "bin", name)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func extract(f *zip.File, to string) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(r, configMax))
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
