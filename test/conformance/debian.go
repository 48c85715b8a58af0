package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tools are the Debian packages whose programs specs call in pods.
var tools = []string{
	"bash", "bind9-dnsutils", "bsdextrautils", "busybox-static", "coreutils", "curl", "findutils", "grep", "hostname", "iproute2",
	"libc-bin", "mount", "netcat-openbsd", "procps", "sed", "tar", "util-linux",
}

// unwanted are packages, by how their names begin, that tools require for their
// installation alone.
var unwanted = []string{"debconf", "dpkg", "init-system-helpers", "libperl", "perl", "usrmerge"}

// debian fetches packages into a folder of its own. It knows of none that is
// installed, so that what it fetches is whole, and changes nothing of the machine's.
type debian struct{ dir string }

// newDebian prepares the folder.
func newDebian(dir string) (debian, error) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return debian{}, fmt.Errorf("images are made of Debian packages: there is no %s: run this on Debian", program)
		}
	}
	d := debian{dir}
	return d, errors.Join(os.MkdirAll(filepath.Join(d.archives(), "partial"), 0o755), os.WriteFile(d.status(), nil, 0o644))
}

func (d debian) archives() string { return filepath.Join(d.dir, "archives") }
func (d debian) status() string   { return filepath.Join(d.dir, "status") }

// deb is a package in a file of the archive, which has its version in its name, and
// its digest.
type deb struct{ file, digest string }

// closure lists packages and all that they require, but for those unwanted.
func (d debian) closure(ctx context.Context, packages []string) ([]deb, error) {
	said, err := d.install(ctx, packages, "--print-uris")
	if err != nil {
		return nil, err
	}
	return parseURIs(said, unwanted)
}

// fetch has the files of packages in the archive.
func (d debian) fetch(ctx context.Context, packages []string) error {
	_, err := d.install(ctx, packages, "--download-only")
	return err
}

func (d debian) install(ctx context.Context, packages []string, more string) (string, error) {
	args := []string{"-qq", "--yes", "--no-install-recommends", more}
	for option, value := range map[string]string{
		"Dir::State::status": d.status(), "Dir::State::extended_states": filepath.Join(d.dir, "extended_states"),
		"Dir::Cache": d.dir, "Dir::Cache::archives": d.archives(), "Debug::NoLocking": "true", "APT::Sandbox::User": "root",
	} {
		args = append(args, "-o", option+"="+value)
	}
	cmd := exec.CommandContext(ctx, "apt-get", append(append(args, "install"), packages...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("fetch Debian packages: %w: %s; 'apt-get update' brings their list up to date", err, oneLine(said.String()))
	}
	return out.String(), nil
}

// uri is a line of apt-get --print-uris: where a file lies, its name and size, and
// mostly a digest.
var uri = regexp.MustCompile(`^'[^']+' ([A-Za-z0-9%.+~_-]+\.deb) [0-9]+ ?([A-Za-z0-9]+:[0-9A-Za-z]+)?$`)

// parseURIs reads what apt-get --print-uris says, but for packages without which it
// goes.
func parseURIs(said string, without []string) ([]deb, error) {
	var all []deb
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := uri.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("apt-get names no file of a package: %q", line)
		}
		if !slices.ContainsFunc(without, func(begin string) bool { return strings.HasPrefix(m[1], begin) }) {
			all = append(all, deb{m[1], m[2]})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("apt-get names no package to fetch")
	}
	return all, nil
}

// open streams the files of a package as a tar archive; the caller closes it.
func (d debian) open(ctx context.Context, p deb) (io.ReadCloser, error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", filepath.Join(d.archives(), p.file))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", p.file, err)
	}
	return unpacking{out, cmd, p.file}, nil
}

// unpacking is the output of a dpkg-deb.
type unpacking struct {
	io.ReadCloser
	cmd  *exec.Cmd
	file string
}

// Close waits for the end, which it has come to if all was read.
func (u unpacking) Close() error {
	if err := errors.Join(u.ReadCloser.Close(), u.cmd.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w", u.file, err)
	}
	return nil
}
