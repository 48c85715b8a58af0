package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"skerry.dev/skerry/lab/cluster/image"
)

// The archive has all images, each of one layer, with what they run; and NamesIn reads
// their names.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	agent, dns := filepath.Join(dir, "agent"), filepath.Join(dir, "dns")
	for _, program := range []string{agent, dns} {
		if err := os.WriteFile(program, []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	images := []image.Image{
		{Reference: "skerry.local/agent:lab", Program: agent, Entrypoint: []string{"/agent"}},
		{Reference: "skerry.local/pause:lab", Program: agent, Entrypoint: []string{"/agent", "hold"}},
		{Reference: "skerry.local/dns:lab", Program: dns, Entrypoint: []string{"/dns"}},
	}
	archive := filepath.Join(dir, "images.tar")
	if err := image.Write(archive, images); err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		tag, err := name.NewTag(i.Reference)
		if err != nil {
			t.Fatal(err)
		}
		made, err := tarball.ImageFromPath(archive, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := made.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(config.Config.Entrypoint, i.Entrypoint) || len(config.RootFS.DiffIDs) != 1 {
			t.Errorf("%s runs %v of %d layers", i.Reference, config.Config.Entrypoint, len(config.RootFS.DiffIDs))
		}
	}
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	want := []string{"skerry.local/agent:lab", "skerry.local/dns:lab", "skerry.local/pause:lab"}
	if got, err := image.NamesIn(file); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := image.Write(archive, []image.Image{{Reference: "a:b", Program: filepath.Join(dir, "gone")}}); err == nil {
		t.Error("an image of nothing")
	}
}

// A program that an image of it alone could not run is refused as it is made, not when
// its pod fails.
func TestWriteRefusesDynamic(t *testing.T) {
	err := image.Write(filepath.Join(t.TempDir(), "images.tar"), []image.Image{{Reference: "a:b", Program: "/bin/sh"}})
	dynamic, ok := errors.AsType[*image.DynamicError](err)
	if !ok || dynamic.Program != "/bin/sh" || !filepath.IsAbs(dynamic.Loader) {
		t.Errorf("got %v", err)
	}
}
