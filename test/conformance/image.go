package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image is one that specs run, by the names that they have for it, made as its
// Dockerfile upstream says (test/images), on Debian in place of Alpine.
type image struct {
	names []string
	// layers from the lowest on.
	layers []string
	user   string
	// entrypoint and command are what it runs.
	entrypoint, command []string
}

// Layers of images: that of Debian's tools, and those of programs and files.
const (
	layerTools    = "tools"
	layerEtcd     = "etcd"
	layerNautilus = "nautilus"
	layerKitten   = "kitten"
)

// images are those that the wider list needs. All that can share the tools do:
// nodes keep images in memory.
func images() []image {
	const registry = "registry.k8s.io/"
	const e2e = registry + "e2e-test-images/"
	on, runs := []string{layerTools, agnhost}, []string{"/agnhost"}
	return []image{
		{names: []string{e2e + "agnhost:2.63.0", e2e + "agnhost:2.55"}, layers: on, entrypoint: runs, command: []string{"pause"}},
		{names: []string{e2e + "nonroot:1.5"}, layers: on, user: "1234", entrypoint: runs, command: []string{"pause"}},
		{names: []string{registry + "pause:3.10.2"}, layers: on, user: "65535:65535", entrypoint: []string{"/agnhost", "pause"}},
		// No spec looks at what it serves.
		{names: []string{e2e + "nginx:1.15-4", e2e + "nginx:1.27-0"}, layers: on, entrypoint: runs, command: []string{"test-webserver"}},
		{names: []string{e2e + "nautilus:1.8"}, layers: append(slices.Clone(on), layerNautilus), entrypoint: runs, command: []string{"test-webserver"}},
		{names: []string{e2e + "kitten:1.8"}, layers: append(slices.Clone(on), layerKitten), entrypoint: runs, command: []string{"test-webserver"}},
		{names: []string{e2e + "busybox:1.37.0-1", e2e + "glibc-dns-testing:2.0.0"}, layers: []string{layerTools}, command: []string{"sh"}},
		{names: []string{e2e + "nonewprivs:1.4"}, layers: []string{layerTools, nonewprivs}, command: []string{"nnp"}},
		{names: []string{e2e + "sample-apiserver:1.29.2"}, layers: []string{sampleAPI}, entrypoint: []string{"/sample-apiserver"}},
		{names: []string{registry + "etcd:3.6.8-0"}, layers: []string{layerEtcd}, entrypoint: []string{"/usr/local/bin/etcd"}},
	}
}

// recipe counts what the making of images comes to otherwise than by what is named
// here: a change of it makes those that are kept anew.
const recipe = "1"

// key names what images are made of.
func key(packages []deb, programs map[string]string) string {
	sum := sha256.New()
	_, _ = fmt.Fprint(sum, recipe, runtime.GOARCH, packages, dispensable, programs, images()) // a hash takes all
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// archive is the path of the images in one file, as docker save writes it. It is
// made where the user's cache has none of the same packages and programs.
func archive(ctx context.Context, programs map[string]string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep images: %w; set XDG_CACHE_HOME or HOME", err)
	}
	cache = filepath.Join(cache, "skerry", "conformance")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "images-*.part")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	d, err := newDebian(filepath.Join(work, "debian"))
	if err != nil {
		return "", err
	}
	packages, err := d.closure(ctx, tools)
	if err != nil {
		return "", err
	}
	path = filepath.Join(cache, "images-"+key(packages, programs)+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	say("making the images of %d Debian packages and %d programs; this happens once for their versions", len(packages), len(programs))
	if err := d.fetch(ctx, tools); err != nil {
		return "", err
	}
	source, err := builder(catalogue()).Folder(ctx, agnhost)
	if err != nil {
		return "", err
	}
	made := filepath.Join(work, "images.tar")
	if err := pack(ctx, made, layering{d, packages, programs, filepath.Dir(source), work}); err != nil {
		return "", fmt.Errorf("make images: %w", err)
	}
	if err := os.Rename(made, path); err != nil {
		return "", err
	}
	return path, forget(path)
}

// forget removes the images of other packages and programs than the current: a
// hundred megabytes each, for which nothing asks again.
func forget(current string) error {
	dir := filepath.Dir(current)
	all, err := fs.Glob(os.DirFS(dir), "images-*.tar")
	for _, file := range all {
		if file == filepath.Base(current) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			return err
		}
		say("removed %s, of other packages or programs", filepath.Join(dir, file))
	}
	return err
}

// pack writes all images into one file.
func pack(ctx context.Context, to string, l layering) error {
	layers := map[string]v1.Layer{}
	all := map[name.Tag]v1.Image{}
	for _, i := range images() {
		var stack []v1.Layer
		for _, named := range i.layers {
			if layers[named] == nil {
				layer, err := l.layer(ctx, named)
				if err != nil {
					return fmt.Errorf("%s: %w", named, err)
				}
				layers[named] = layer
			}
			stack = append(stack, layers[named])
		}
		made, err := i.of(stack)
		if err != nil {
			return err
		}
		for _, n := range i.names {
			tag, err := name.NewTag(n)
			if err != nil {
				return err
			}
			all[tag] = made
		}
	}
	return tarball.MultiWriteToFile(to, all)
}

// of makes the image of its layers.
func (i image) of(layers []v1.Layer) (v1.Image, error) {
	made, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	config.Config.Entrypoint, config.Config.Cmd, config.Config.User = i.entrypoint, i.command, i.user
	return mutate.ConfigFile(made, config)
}

// layering makes layers of packages and programs, in files of a folder.
type layering struct {
	debian   debian
	packages []deb
	programs map[string]string
	// upstream has a folder for each of upstream's images.
	upstream, work string
}

// layer writes a layer.
func (l layering) layer(ctx context.Context, named string) (v1.Layer, error) {
	path := filepath.Join(l.work, named+".tar")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.write(ctx, f, named), f.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(path)
}

func (l layering) write(ctx context.Context, w io.Writer, named string) error {
	t := newTree(w)
	var err error
	switch named {
	case layerTools:
		err = errors.Join(addBasics(t), l.addPackages(ctx, t))
	case agnhost:
		err = l.addAgnhost(t)
	case layerNautilus, layerKitten:
		err = l.addHTML(t, named)
	case nonewprivs:
		const setuid = 0o4755
		err = t.addFile("usr/local/bin/nnp", setuid, l.programs[nonewprivs])
	case sampleAPI:
		err = t.addFile(sampleAPI, 0o755, l.programs[sampleAPI])
	case layerEtcd:
		err = t.addFile("usr/local/bin/etcd", 0o755, l.programs[layerEtcd])
	}
	return errors.Join(err, t.end())
}

// addBasics adds what the installation of packages would make: links, users, names.
func addBasics(t *tree) error {
	var all error
	for _, folder := range merged {
		all = errors.Join(all, t.addLink(folder, "usr/"+folder))
	}
	// Specs write for a shell that knows [[, and call tools by their names upstream.
	all = errors.Join(all, t.addLink("usr/bin/sh", "bash"), t.addLink("usr/bin/nc", "nc.openbsd"), t.addLink("usr/bin/sysctl", "../sbin/sysctl"))
	for _, applet := range []string{"awk", "ping", "wget"} {
		all = errors.Join(all, t.addLink("usr/bin/"+applet, "busybox"))
	}
	const sticky = 0o1777
	return errors.Join(all,
		t.addDir("tmp", sticky), t.addDir("var/tmp", sticky), t.addDir("root", 0o700), t.addDir("home/user", 0o777),
		t.addText("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\nuser-defined-in-image:x:1000:1000::/home/user:/bin/sh\n"),
		t.addText("etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"),
		t.addText("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n"))
}

func (l layering) addPackages(ctx context.Context, t *tree) error {
	for _, p := range l.packages {
		files, err := l.debian.open(ctx, p)
		if err != nil {
			return err
		}
		if err := errors.Join(t.addPackage(files), files.Close()); err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
	}
	return nil
}

// addAgnhost adds upstream's test server, the certificate that it serves by, and
// the name by which a spec calls it in its entrypoint's place.
func (l layering) addAgnhost(t *tree) error {
	porter := filepath.Join(l.upstream, agnhost, "porter")
	return errors.Join(
		t.addFile("agnhost", 0o755, l.programs[agnhost]), t.addLink("agnhost-2", "agnhost"), t.addDir("uploads", 0o755),
		t.addFile("localhost.crt", 0o644, filepath.Join(porter, "localhost.crt")),
		t.addFile("localhost.key", 0o644, filepath.Join(porter, "localhost.key")))
}

// addHTML adds the page and the picture of one of the two images that kubectl's
// specs exchange.
func (l layering) addHTML(t *tree, named string) error {
	html := filepath.Join(l.upstream, named, "html")
	return errors.Join(
		t.addFile("data.json", 0o644, filepath.Join(html, "data.json")),
		t.addFile(named+".jpg", 0o644, filepath.Join(html, named+".jpg")))
}
