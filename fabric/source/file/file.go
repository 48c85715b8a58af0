// Package file reads what a gateway knows of its fabric from a folder of YAML files, in
// the form of Kubernetes' objects: one or more documents in a file, each of a kind of
// Kinds. Unknown keys and everything that contradicts itself are errors with their place.
// It watches nothing. Start at Read.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/strict"
)

// APIVersion of every document.
const APIVersion = "fabric.skerry.dev/v1alpha1"

// Bounds of a folder.
const (
	filesMax     = 4096
	documentsMax = 65536
)

// Read makes a snapshot of the files *.yaml of a folder. Errors are all that is wrong
// with all of them.
func Read(folder string) (*snapshot.Snapshot, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(names) > filesMax {
		return nil, fmt.Errorf("%s has %d files: the most is %d", folder, len(names), filesMax)
	}
	if _, err := os.Stat(folder); err != nil {
		return nil, err
	}
	slices.Sort(names)
	r := newReader()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		r.file(name, data)
	}
	r.together()
	return r.into, r.wrong.Err()
}

// Decode reads one file, as Read does.
func Decode(name string, data []byte) (*snapshot.Snapshot, error) {
	r := newReader()
	r.file(name, data)
	r.together()
	return r.into, r.wrong.Err()
}

// reader collects what documents say.
type reader struct {
	into *snapshot.Snapshot
	// first says where an object of a kind and a name is, by both.
	first map[string]string
	// later are checks that want all objects to be there.
	later []func()
	count int
	// owners says which workload has a prefix, and where.
	owners map[netip.Prefix]string
	// listeners says which import is called at an address, and where.
	listeners map[listenKey]string
	wrong     *strict.Errors
}

func newReader() *reader {
	return &reader{
		into: &snapshot.Snapshot{}, first: map[string]string{}, owners: map[netip.Prefix]string{}, listeners: map[listenKey]string{}, wrong: &strict.Errors{},
	}
}

func (r *reader) together() {
	for _, check := range r.later {
		check()
	}
}

// file reads its documents, each behind as many empty lines as stand before it, so that
// places are those of the file.
func (r *reader) file(name string, data []byte) {
	var begin, line int
	document := func(end int) {
		text := data[begin:end]
		if len(bytes.TrimSpace(withoutComments(text))) > 0 {
			r.document(name, append(bytes.Repeat([]byte("\n"), line), text...))
		}
	}
	for at, lines := 0, 0; at < len(data); lines++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if text := bytes.TrimRight(data[at:end], " \t\r\n"); bytes.Equal(text, []byte("---")) {
			document(at)
			begin, line = end, lines+1
		}
		at = end
	}
	document(len(data))
}

func withoutComments(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			out = append(out, line...)
		}
	}
	return out
}

// document reads one of some kind.
func (r *reader) document(name string, data []byte) {
	if r.count++; r.count > documentsMax {
		if r.count == documentsMax+1 {
			r.fail(&strict.Error{File: name, Line: 1, Column: 1, Message: fmt.Sprintf("more than %d documents", documentsMax)})
		}
		return
	}
	var head struct {
		Kind string `yaml:"kind"`
	}
	_ = yaml.Unmarshal(data, &head) // what is wrong with it, the strict reading says
	kinds := map[string]func(name string, data []byte){
		"Peer": r.peer, "ServiceExport": r.export, "ServiceImport": r.importOf, "AccessPolicy": r.policy,
		"Workload": r.workload,
	}
	read := kinds[head.Kind]
	if read == nil {
		r.unknown(name, data)
		return
	}
	read(name, data)
}

// unknown complains of a document of no kind that there is.
func (r *reader) unknown(name string, data []byte) {
	var d struct {
		object `yaml:",inline"`
		Spec   map[string]string `yaml:"spec,omitempty"`
	}
	document, err := strict.Decode(name, data, &d)
	if d.Kind == "" {
		r.add(err)
		return
	}
	r.fail(document.Errorf("kind", nearest.Hint(d.Kind, Kinds()), "no kind %q", d.Kind))
}

// Kinds lists the kinds of documents.
func Kinds() []string {
	return []string{"AccessPolicy", "Peer", "ServiceExport", "ServiceImport", "Workload"}
}

// object is what all documents begin with.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace,omitempty"`
	} `yaml:"metadata"`
}

// decode reads a document, and holds what all have to its form.
func (r *reader) decode(name string, data []byte, into any, o *object) (*strict.Document, bool) {
	d, err := strict.Decode(name, data, into)
	if err != nil {
		r.add(err)
		return d, false
	}
	if o.APIVersion != APIVersion {
		r.fail(d.Errorf("apiVersion", "write "+APIVersion, "no version %q of %s", o.APIVersion, o.Kind))
	}
	for path, value := range map[string]string{"metadata.name": o.Metadata.Name, "metadata.namespace": o.Metadata.Namespace} {
		if value == "" && path == "metadata.namespace" {
			continue
		}
		if !isLabel(value) {
			r.fail(d.Errorf(path, "write up to 63 of a-z, 0-9 and -", "%q is not a name", value))
		}
	}
	key := strings.Join([]string{o.Kind, o.Metadata.Namespace, o.Metadata.Name}, "/")
	line, _ := d.At("metadata.name")
	here := fmt.Sprintf("%s:%d", name, line)
	if before, taken := r.first[key]; taken {
		r.fail(d.Errorf("metadata.name", "remove one, or name it otherwise", "the %s %s is in %s already", o.Kind, o.Metadata.Name, before))
	}
	r.first[key] = here
	return d, true
}

func (r *reader) fail(err *strict.Error) { r.wrong.Add(err) }

// add takes errors over from another list.
func (r *reader) add(err error) {
	if many, ok := errors.AsType[*strict.Errors](err); ok {
		for _, one := range many.List {
			r.wrong.Add(one)
		}
		r.wrong.Dropped += many.Dropped
	}
}
