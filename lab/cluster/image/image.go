// Package image makes images of static programs, and reads which an archive has. They
// come from no registry. Start at Write.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// Image is one static program at the root of an image, which runs it.
type Image struct {
	// Reference is its name: REGISTRY/NAME:TAG.
	Reference string
	// Program is a path of the machine.
	Program    string
	Entrypoint []string
}

// Write writes images as one archive, as docker save does, which containerd
// takes in. Those of one program share their layer.
func Write(path string, images []Image) error {
	layers := map[string]v1.Layer{}
	archive := map[name.Tag]v1.Image{}
	for _, i := range images {
		layer, err := layers[i.Program], error(nil)
		if layer == nil {
			layer, err = layerOf(i.Program)
			layers[i.Program] = layer
		}
		if err != nil {
			return err
		}
		tag, err := name.NewTag(i.Reference)
		if err == nil {
			archive[tag], err = i.build(layer)
		}
		if err != nil {
			return fmt.Errorf("make image %s: %w", i.Reference, err)
		}
	}
	return tarball.MultiWriteToFile(path, archive)
}

func (i Image) build(layer v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	const nobody = "65534"
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config.Entrypoint, config.Config.User = i.Entrypoint, nobody
	return mutate.ConfigFile(image, config)
}

// layerOf one program at the root, as it is: a cluster waits for its images, and to pack
// and unpack them takes longer than to copy them.
func layerOf(path string) (v1.Layer, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if loader := loaderOf(program); loader != "" {
		return nil, &DynamicError{Program: path, Loader: loader}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if _, err := w.Write(program); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	return static.NewLayer(archive.Bytes(), types.DockerUncompressedLayer), nil
}

// loaderOf a program is what it is started by; empty where it is static, or of another
// format than ELF.
func loaderOf(program []byte) string {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return ""
	}
	for _, part := range file.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(part.Open(), unix.PathMax))
		if err != nil {
			return "a loader"
		}
		return string(bytes.TrimRight(name, "\x00"))
	}
	return ""
}

// DynamicError is of a program that needs more than an image of it alone has.
type DynamicError struct {
	Program string
	// Loader is the path of the dynamic loader that starts it.
	Loader string
}

// Error names both.
func (e *DynamicError) Error() string {
	return fmt.Sprintf("%s is not static: it needs %s, and an image has the program alone", e.Program, e.Loader)
}

// Hint says how it is built.
func (e *DynamicError) Hint() string { return "build it with CGO_ENABLED=0, as 'make build' does" }
