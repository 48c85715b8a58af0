package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"skerry.dev/skerry/kube"
)

// ownName is that of the program that runs.
const ownName = "skerry"

// Program is a binary that a run starts.
type Program struct {
	Name string `json:"name"`
	// Path of the file, links followed.
	Path string `json:"path"`
	// Version of a load's tool or of a broker, as it says, or that a program of clusters
	// is pinned to.
	Version string `json:"version,omitempty"`
	// Of names the whole that it is a part of: Kubernetes.
	Of string `json:"of,omitempty"`
	// SHA256 of the file, in hexadecimal. Libraries that it loads are not in it.
	SHA256 string `json:"sha256"`
}

// kubernetesName is the whole that clusters are made of.
const kubernetesName = "Kubernetes"

// programs are skerry itself, its agent, what the systems say that they need, the
// tools that drive loads, and brokers.
func (r *runner) programs() ([]Program, error) {
	skerry, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find skerry: %w", err)
	}
	paths := map[string]string{ownName: skerry, "skerry-agent": r.Agent, "sh": "/bin/sh"} // sh runs the steps of systems
	for _, name := range r.Experiment.Systems {
		stack := r.Stacks[name]
		if stack == nil {
			continue
		}
		found, err := stack.Programs() // of one that is missing the system's own start tells
		if err != nil {
			return nil, err
		}
		maps.Copy(paths, found)
	}
	for name, tool := range r.Tools {
		paths[name] = tool.File
	}
	for name, broker := range r.Brokers {
		paths[name] = broker.Path
	}
	maps.Copy(paths, r.Kubernetes)
	var all []Program
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		p, err := programAt(name, paths[name])
		if err != nil {
			return nil, err
		}
		p.Version = cmp.Or(r.Tools[name].Version, r.Brokers[name].Version)
		if _, ok := r.Kubernetes[name]; ok {
			p.Of = kubernetesName
			_, p.Version, _ = kube.Catalogue().Version(name)
		}
		all = append(all, p)
	}
	return all, nil
}

func programAt(name, path string) (Program, error) {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Program{}, fmt.Errorf("digest of %s: %w", name, err)
	}
	digest, err := digestOf(path)
	if err != nil {
		return Program{}, fmt.Errorf("digest of %s: %w", name, err)
	}
	return Program{Name: name, Path: path, SHA256: digest}, nil
}

// digestOf a file is its SHA-256, in hexadecimal.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// changedPrograms are those of now that are not what they were before.
func changedPrograms(before, now []Program) []Program {
	var changed []Program
	for _, p := range now {
		i := slices.IndexFunc(before, func(b Program) bool { return b.Name == p.Name })
		if i < 0 || before[i].SHA256 != p.SHA256 {
			changed = append(changed, p)
		}
	}
	return changed
}

// begun is a program as it was when the lab was started.
type begun struct {
	Program
	info fs.FileInfo
}

// looked at are all that are started by their paths; skerry itself runs already.
func looked(all []Program) ([]begun, error) {
	var looked []begun
	for _, p := range all {
		if p.Name == ownName {
			continue
		}
		info, err := os.Stat(p.Path)
		if err != nil {
			return nil, err
		}
		looked = append(looked, begun{p, info})
	}
	return looked, nil
}

// samePrograms says whether the next repetition starts the same as those before. The error
// may be a *ChangedFileError.
func (r *runner) samePrograms() error {
	for i, p := range r.begun {
		info, err := os.Stat(p.Path)
		if err == nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() && info.ModTime().Equal(p.info.ModTime()) {
			continue
		}
		if now, err := programAt(p.Name, p.Path); err != nil || now.SHA256 != p.SHA256 {
			return &ChangedFileError{p.Path}
		}
		r.begun[i].info = info // it was written again
	}
	return nil
}

// sameSystem says whether a system's plug-ins are what is recorded. The error may be a
// *ChangedError.
func (r *runner) sameSystem(name string, record Record) error {
	stack := r.Stacks[name]
	if stack == nil {
		return nil
	}
	now, err := stack.Digest()
	if before := record.Digests[name]; err == nil && before != "" && now != before {
		err = &ChangedError{name}
	}
	return err
}
