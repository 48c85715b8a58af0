package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const uris = `'http://mirror.example/pool/bash_5.2.15-2+b13_amd64.deb' bash_5.2.15-2+b13_amd64.deb 1490936 SHA256:09ab
'http://mirror.example/pool/perl-base_5.36_amd64.deb' perl-base_5.36_amd64.deb 1609692 SHA256:1234
'http://mirror.example/pool/dig_9.18_amd64.deb' bind9-dnsutils_1%3a9.18.49-1~deb12u3_amd64.deb 403224 
`

func TestParseURIs(t *testing.T) {
	got, err := parseURIs(uris, unwanted)
	want := []deb{{"bash_5.2.15-2+b13_amd64.deb", "SHA256:09ab"}, {"bind9-dnsutils_1%3a9.18.49-1~deb12u3_amd64.deb", ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, said := range []string{"", "\n", "E: nothing\n", "'http://x/y' ../y.deb 1 SHA256:00\n"} {
		if got, err := parseURIs(said, nil); err == nil {
			t.Errorf("%q: got %v", said, got)
		}
	}
}

// Whatever apt-get says, no name leads out of the folder that files are fetched to.
func FuzzURIs(f *testing.F) {
	f.Add(uris)
	f.Fuzz(func(t *testing.T, said string) {
		all, err := parseURIs(said, unwanted)
		if err == nil && len(all) == 0 {
			t.Error("neither packages nor an error")
		}
		for _, p := range all {
			if !filepath.IsLocal(p.file) || filepath.Base(p.file) != p.file {
				t.Errorf("a package in %q", p.file)
			}
		}
	})
}

// A package's files are read as dpkg-deb streams them; one that is none is an error.
func TestOpen(t *testing.T) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: this is not Debian", program)
		}
	}
	d, err := newDebian(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control": "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: x\n",
		"bin/hello":      "hello\n", "usr/share/doc/hello/README": "words\n",
	} {
		if err := os.MkdirAll(filepath.Join(source, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hello := deb{file: "hello_1_all.deb"}
	if out, err := exec.Command("dpkg-deb", "--build", "--root-owner-group", source, filepath.Join(d.archives(), hello.file)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var layer strings.Builder
	made := newTree(&layer)
	if err := (layering{debian: d, packages: []deb{hello}}).addPackages(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if err := made.end(); err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, layer.String()), "usr/bin/ usr/bin/hello=hello usr/ usr/share/"; got != want {
		t.Errorf("the layer has %s, want %s", got, want)
	}
	broken := layering{debian: d, packages: []deb{{file: "gone_1_all.deb"}}}
	if err := broken.addPackages(t.Context(), newTree(&layer)); err == nil || !strings.HasPrefix(err.Error(), "gone_1_all.deb: ") {
		t.Errorf("got %v", err)
	}
}
