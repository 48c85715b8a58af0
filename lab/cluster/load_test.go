package cluster_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/image"
)

// tarOf is an archive of one file.
func tarOf(t testing.TB, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func writeTar(t *testing.T, path, name, text string) {
	t.Helper()
	if err := os.WriteFile(path, tarOf(t, name, text), 0o644); err != nil {
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
