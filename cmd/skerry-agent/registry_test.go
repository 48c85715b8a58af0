package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A layer that is pushed is there for those that pull, and is kept in the folder.
func TestRegistry(t *testing.T) {
	l, dir := listening(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveImages(ctx, l, dir) }()
	layer := []byte("a layer")
	digest := fmt.Sprintf("%x", sha256.Sum256(layer))
	at := "http://" + l.Addr().String() + "/v2/app/blobs/"
	response, err := http.Post(at+"uploads/?digest=sha256:"+digest, "application/octet-stream", bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("pushed: %s", response.Status)
	}
	response, err = http.Get(at + "sha256:" + digest)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || !bytes.Equal(pulled, layer) {
		t.Errorf("pulled %s: %q, %v", response.Status, pulled, err)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "sha256", digest)); err != nil || !bytes.Equal(kept, layer) {
		t.Errorf("kept %q, %v", kept, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
