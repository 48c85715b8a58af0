package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/cluster/image"
)

// tarOf is an archive of one file.
func tarOf(t testing.TB, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(fstest.MapFS{name: {Data: []byte(text)}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const (
	dockerManifest = `[{"Config": "c.json", "RepoTags": ["web:1", "web:2"]}, {"RepoTags": ["app:1", "web:1"]}]`
	ociIndex       = `{"manifests": [{"annotations": {"io.containerd.image.name": "docker.io/library/web:1"}}, {}]}`
)

func TestNamesIn(t *testing.T) {
	docker := tarOf(t, "manifest.json", dockerManifest)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(docker); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		archive []byte
		want    string
	}{
		{"docker save", docker, "app:1 web:1 web:2"},
		{"compressed", zipped.Bytes(), "app:1 web:1 web:2"},
		{"OCI layout", tarOf(t, "index.json", ociIndex), "docker.io/library/web:1"},
		{"without a name", tarOf(t, "index.json", `{"manifests": [{}]}`), ""},
	} {
		if got, err := image.NamesIn(bytes.NewReader(c.archive)); err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, %v", c.what, got, err)
		}
	}
	for what, archive := range map[string][]byte{
		"nothing": nil, "text": []byte(strings.Repeat("text", 1000)), "a tar of something else": tarOf(t, "a.txt", "a"),
		"a list that is none": tarOf(t, "manifest.json", "{"), "half a gzip": zipped.Bytes()[:zipped.Len()/2], "half a tar": docker[:560],
	} {
		if got, err := image.NamesIn(bytes.NewReader(archive)); !errors.Is(err, image.ErrFormat) {
			t.Errorf("%s: got %v, %v", what, got, err)
		}
	}
}

func FuzzNamesIn(f *testing.F) {
	f.Add(tarOf(f, "manifest.json", dockerManifest))
	f.Add(tarOf(f, "index.json", ociIndex))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, archive []byte) {
		names, err := image.NamesIn(bytes.NewReader(archive))
		if err != nil && !errors.Is(err, image.ErrFormat) {
			t.Errorf("an error that says nothing: %v", err)
		}
		if !slices.IsSorted(names) {
			t.Errorf("in no order: %v", names)
		}
	})
}
