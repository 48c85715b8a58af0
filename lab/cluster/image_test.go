package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The archive has all images, each of one layer, with what they run.
func TestWriteImages(t *testing.T) {
	dir := t.TempDir()
	o := Options{Agent: filepath.Join(dir, "skerry-agent"), Extras: Extras{Metrics: true}, Programs: map[string]string{
		"coredns": filepath.Join(dir, "coredns"), metricsServer: filepath.Join(dir, metricsServer),
	}}
	for _, program := range []string{o.Agent, o.Programs["coredns"], o.Programs[metricsServer]} {
		if err := os.WriteFile(program, []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(dir, "images.tar")
	if err := writeImages(archive, append(nodeImages(o), headImages(o)...)); err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string][]string{
		AgentImage: {"/skerry-agent"}, pauseImage: {"/skerry-agent", "hold"}, coreDNSImage: {"/coredns"},
		"skerry.local/metrics-server:lab": {"/metrics-server"},
	} {
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(archive, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(config.Config.Entrypoint, want) || len(config.RootFS.DiffIDs) != 1 {
			t.Errorf("%s runs %v of %d layers", reference, config.Config.Entrypoint, len(config.RootFS.DiffIDs))
		}
	}
	if err := writeImages(archive, nodeImages(Options{Agent: filepath.Join(dir, "gone")})); err == nil {
		t.Error("an image of nothing")
	}
	if o.Metrics = false; len(headImages(o)) != 1 {
		t.Error("metrics-server is there where nobody asked for it")
	}
}
