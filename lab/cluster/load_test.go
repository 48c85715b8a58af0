package cluster_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/image"
)

// writeTar makes an archive of one file.
func writeTar(t *testing.T, path, name, text string) {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := errors.Join(w.AddFS(fstest.MapFS{name: {Data: []byte(text)}}), w.Close())
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "web.tar")
	if err := os.WriteFile(text, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Load(t.Context(), nil, text); !errors.Is(err, image.ErrFormat) || !strings.Contains(err.Error(), text) {
		t.Errorf("a text: %v", err)
	}
	if _, err := cluster.Load(t.Context(), nil, text+".gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
