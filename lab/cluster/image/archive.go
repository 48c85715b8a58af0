package image

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// ErrFormat is of what is no archive of images.
var ErrFormat = errors.New("not an archive of images, as docker save writes it")

// manifestMax bounds what is read of an archive's list of images, in bytes.
const manifestMax = 4 << 20

// NamesIn gives the names of the images in an archive: a tar file as docker save writes it or of
// an OCI layout, which gzip may have compressed. Those without a name it leaves out.
func NamesIn(r io.Reader) ([]string, error) {
	buffered := bufio.NewReader(r)
	r = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, ErrFormat
		}
		r = unzipped
	}
	var names []string
	found := false
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && found {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if err != nil {
			return nil, ErrFormat
		}
		list := listOf(header.Name)
		if list == nil {
			continue
		}
		more, err := list(io.LimitReader(archive, manifestMax))
		if err != nil {
			return nil, ErrFormat
		}
		names, found = append(names, more...), true
	}
}

// listOf gives the reader of an archive's file that lists images; nil for another.
func listOf(file string) func(io.Reader) ([]string, error) {
	switch file {
	case "manifest.json":
		return dockerList
	case "index.json":
		return ociList
	}
	return nil
}

func dockerList(r io.Reader) (names []string, err error) {
	var images []struct{ RepoTags []string }
	err = json.NewDecoder(r).Decode(&images)
	for _, i := range images {
		names = append(names, i.RepoTags...)
	}
	return names, err
}

func ociList(r io.Reader) (names []string, err error) {
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	err = json.NewDecoder(r).Decode(&index)
	for _, m := range index.Manifests {
		if name := m.Annotations["io.containerd.image.name"]; name != "" {
			names = append(names, name)
		}
	}
	return names, err
}
