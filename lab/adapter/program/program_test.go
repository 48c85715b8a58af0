package program_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/jmeter"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/adapter/program"
)

// here makes a path of which programs are scripts.
func here(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

func TestInstalled(t *testing.T) {
	here(t, map[string]string{
		"ab":  `echo 'This is ApacheBench, Version 2.3 <$Revision$>'`,
		"wrk": `echo 'wrk debian/4.1.0-3 [epoll] Copyright'; exit 1`,
	})
	for tool, version := range map[string]string{"ab": "2.3", "wrk": "debian/4.1.0-3"} {
		p, err := program.Find(t.Context(), tool, nil)
		if err != nil || p.Version != version || !slices.Equal(p.Args, []string{p.File}) || filepath.Base(p.File) != tool || p.Dir != filepath.Dir(p.File) {
			t.Errorf("%s: %+v, %v", tool, p, err)
		}
	}
}

// A tool that is missing is named, with what brings it.
func TestMissing(t *testing.T) {
	cases := []struct {
		tool, message string
		packages      []string
		err           error
		scripts       map[string]string
	}{
		{"ab", "load tool ab is not installed", []string{"apache2-utils"}, nil, nil},
		{"wrk", "load tool wrk is not installed", []string{"wrk"}, nil, nil},
		{"jmeter", "load tool jmeter is not installed", []string{"default-jre-headless", "maven"}, nil, nil},
		{"jmeter", "load tool jmeter cannot be made ready: fetch jmeter: there is no mvn command on the path", []string{"maven"},
			jmeter.ErrNoMaven, map[string]string{"java": "true"}},
		{"hey", "load tool hey cannot be made ready: build hey: there is no go command on the path", nil, gobuild.ErrNoGo, nil},
		{"ab", "load tool ab cannot be made ready: ", nil, nil, map[string]string{"ab": "echo another program"}},
	}
	for _, c := range cases {
		here(t, c.scripts)
		_, err := program.Find(t.Context(), c.tool, nil)
		m, ok := errors.AsType[*program.MissingError](err)
		if !ok || m.Tool != c.tool || !strings.HasPrefix(err.Error(), c.message) || !slices.Equal(m.Packages, c.packages) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: got %v (%+v), want %q", c.tool, err, m, c.message)
		}
	}
	if _, err := program.Find(t.Context(), "vegeta", nil); !errors.Is(err, adapter.ErrUnknown) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// What a tool lacks is known before it is made ready: the same as Find says where
// nothing is here, and nothing where all it needs is.
func TestMissingBeforehand(t *testing.T) {
	here(t, nil)
	tools := []string{"ab", "wrk", "hey", "k6", "jmeter"}
	for _, tool := range tools {
		_, want := program.Find(t.Context(), tool, nil)
		found, ok := errors.AsType[*program.MissingError](want)
		lacks, same := errors.AsType[*program.MissingError](program.Missing(tool))
		if !ok || !same || !slices.Equal(lacks.Packages, found.Packages) || errors.Is(lacks, gobuild.ErrNoGo) != errors.Is(found, gobuild.ErrNoGo) {
			t.Errorf("%s: lacks %v (%+v), and %v when it is looked for", tool, lacks, lacks, want)
		}
	}
	here(t, map[string]string{"java": "true"})
	if lacks, ok := errors.AsType[*program.MissingError](program.Missing("jmeter")); !ok || !slices.Equal(lacks.Packages, []string{"maven"}) {
		t.Errorf("with java alone jmeter lacks %v", lacks)
	}
	here(t, map[string]string{"ab": "", "wrk": "", "go": "", "java": "", "mvn": ""})
	for _, tool := range append(tools, "skerry", "") {
		if err := program.Missing(tool); err != nil {
			t.Errorf("%q: lacks %v", tool, err)
		}
	}
}

// JMeter is started as its own script starts it, where the cache has it.
func TestJMeter(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is not installed")
	}
	if _, ok := (jmeter.Cache{}).Find(); !ok {
		t.Skip("JMeter is not in the cache: make show AREA=adapters fetches it")
	}
	p, err := program.Find(t.Context(), "jmeter", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Args); n < 3 || p.Args[n-2] != "-jar" || p.Args[n-1] != p.File || !strings.HasPrefix(p.Version, jmeter.Version+" on Java ") {
		t.Errorf("%+v", p)
	}
}
