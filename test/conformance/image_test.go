package main

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The archive has every image by all its names; they share their layers.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	put := func(path string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	programs := map[string]string{}
	for _, n := range []string{agnhost, nonewprivs, sampleAPI, layerEtcd} {
		programs[n] = put("programs/" + n)
	}
	for _, n := range []string{"agnhost/porter/localhost.crt", "agnhost/porter/localhost.key", "nautilus/html/data.json", "nautilus/html/nautilus.jpg", "kitten/html/data.json", "kitten/html/kitten.jpg"} {
		put("upstream/" + n)
	}
	archive := filepath.Join(dir, "images.tar")
	l := layering{programs: programs, upstream: filepath.Join(dir, "upstream"), work: dir}
	if err := pack(t.Context(), archive, l); err != nil {
		t.Fatal(err)
	}
	lowest := map[string]bool{}
	for _, i := range images() {
		for _, n := range i.names {
			config, err := imageIn(t, archive, n).ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(config.Config.Entrypoint, i.entrypoint) || !slices.Equal(config.Config.Cmd, i.command) || config.Config.User != i.user {
				t.Errorf("%s runs %v %v as %q", n, config.Config.Entrypoint, config.Config.Cmd, config.Config.User)
			}
			if i.layers[0] == layerTools {
				lowest[config.RootFS.DiffIDs[0].String()] = true
			}
		}
	}
	if len(lowest) != 1 {
		t.Errorf("the tools are %d layers", len(lowest))
	}
	flat := mutate.Extract(imageIn(t, archive, "registry.k8s.io/e2e-test-images/nautilus:1.8"))
	defer flat.Close()
	archived, err := io.ReadAll(flat)
	if err != nil {
		t.Fatal(err)
	}
	files := " " + listed(t, string(archived)) + " "
	for _, want := range []string{
		" bin->usr/bin ", " usr/bin/sh->bash ", " agnhost=" + programs[agnhost] + " ", " agnhost-2->agnhost ", " nautilus.jpg=", " tmp ", "user-defined-in-image",
	} {
		if !strings.Contains(files, want) {
			t.Errorf("the image lacks %q: %s", want, files)
		}
	}
	l.programs = nil
	if err := pack(t.Context(), archive, l); err == nil || !strings.HasPrefix(err.Error(), agnhost+": ") {
		t.Errorf("without programs: got %v", err)
	}
}

func imageIn(t *testing.T, archive, named string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(named)
	if err != nil {
		t.Fatal(err)
	}
	made, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Of the images that are kept only the current ones stay, and nothing else goes.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"images-0.tar", "images-1.tar", "images-2.tar", "images-3.part", "notes"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := forget(filepath.Join(dir, "images-1.tar")); err != nil {
		t.Fatal(err)
	}
	left, err := fs.Glob(os.DirFS(dir), "*")
	if want := []string{"images-1.tar", "images-3.part", "notes"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v; want %v", left, err, want)
	}
}

// Other packages or programs are other images.
func TestKey(t *testing.T) {
	packages, programs := []deb{{"bash_1_all.deb", "SHA256:1"}}, map[string]string{agnhost: "/a", layerEtcd: "/e"}
	first := key(packages, programs)
	if again := key(slices.Clone(packages), maps.Clone(programs)); again != first {
		t.Errorf("%s is then %s", first, again)
	}
	if key([]deb{{"bash_1_all.deb", "SHA256:2"}}, programs) == first || key(packages, map[string]string{agnhost: "/b", layerEtcd: "/e"}) == first {
		t.Error("others have the same key")
	}
}
