package jmeter

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mvn is a path on which Maven is a script that copies files of a folder.
func mvn(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mvn"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// Every jar is pinned once, and JMeter's own are of the version that the pom names.
func TestPins(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{64}  [A-Za-z0-9_.-]+\.jar$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(jars)) {
		line = strings.TrimSuffix(line, "\n")
		_, name, _ := strings.Cut(line, "  ")
		if !form.MatchString(line) || seen[name] {
			t.Errorf("line %q", line)
		}
		seen[name] = true
	}
	for _, part := range []string{"ApacheJMeter", "ApacheJMeter_config", "ApacheJMeter_core", "ApacheJMeter_http", "ApacheJMeter_functions", "ApacheJMeter_components"} {
		if !seen[part+"-"+Version+".jar"] {
			t.Errorf("there is no %s of %s", part, Version)
		}
	}
	if !bytes.Contains(pom, []byte("<version>"+Version+"</version>")) {
		t.Errorf("the pom is not of %s", Version)
	}
}

// A jar that is not the one that is pinned is refused, and nothing of it stays.
func TestTampered(t *testing.T) {
	mvn(t, `for a in "$@"; do case $a in -DoutputDirectory=*) out=${a#*=};; esac; done
mkdir -p "$out"
for name in `+names()+`; do echo tampered >"$out/$name"; done`)
	cache := Cache{Dir: t.TempDir()}
	if _, err := cache.Path(t.Context()); !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), ".jar: not what is pinned: its SHA-256 is ") {
		t.Errorf("got %v", err)
	}
	if _, ok := cache.Find(); ok {
		t.Error("it counts as fetched")
	}
	if left, err := filepath.Glob(filepath.Join(cache.Dir, "*.part")); err != nil || len(left) > 0 {
		t.Errorf("%q stay, %v", left, err)
	}
}

func names() string {
	var all []string
	for line := range strings.Lines(string(jars)) {
		all = append(all, strings.Fields(line)[1])
	}
	return strings.Join(all, " ")
}

func TestFetchFails(t *testing.T) {
	mvn(t, `echo '[ERROR] Could not transfer artifact'; echo; echo '[ERROR] Unknown host'; exit 1`)
	told := ""
	_, err := Cache{Dir: t.TempDir(), Tell: func(line string) { told = line }}.Path(t.Context())
	if err == nil || err.Error() != "fetch jmeter: mvn: exit status 1: Could not transfer artifact; Unknown host" {
		t.Errorf("got %v", err)
	}
	if !strings.HasPrefix(told, "fetching JMeter "+Version+" by Maven") {
		t.Errorf("told %q", told)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (Cache{Dir: t.TempDir()}).Path(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (Cache{Dir: t.TempDir()}).Path(t.Context()); !errors.Is(err, ErrNoMaven) {
		t.Errorf("got %v", err)
	}
}

// Of JMeter's configuration the files of bin alone are taken, none elsewhere.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	jar := filepath.Join(dir, "config.jar")
	f, err := os.Create(jar)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, name := range []string{"bin/jmeter.properties", "bin/templates/a.jmx", "bin/../outside", "META-INF/LICENSE", "bin/"} {
		if w, err := z.Create(name); err == nil && !strings.HasSuffix(name, "/") {
			_, _ = w.Write([]byte(name))
		}
	}
	if err := errors.Join(z.Close(), f.Close(), os.MkdirAll(filepath.Join(dir, "home", "bin"), 0o755), unpack(jar, filepath.Join(dir, "home"))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "home", "*", "*"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "jmeter.properties" {
		t.Errorf("%q, %v", files, err)
	}
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jar")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("a"))
	if err := check(path, hex.EncodeToString(sum[:])); err != nil {
		t.Error(err)
	}
}
