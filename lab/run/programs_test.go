package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/system"
)

// A repetition starts what those before it did, or nothing.
func TestSamePrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	p, err := programAt("gateway", path)
	if err != nil {
		t.Fatal(err)
	}
	var r runner
	if r.begun, err = looked([]Program{{Name: ownName, Path: "replaced"}, p}); err != nil || len(r.begun) != 1 {
		t.Fatalf("looked at %+v, %v", r.begun, err)
	}
	write("one")
	if err := r.samePrograms(); err != nil {
		t.Errorf("one that was written again, the same: %v", err)
	}
	write("two")
	if changed, ok := errors.AsType[*ChangedFileError](r.samePrograms()); !ok || changed.Path != p.Path {
		t.Errorf("one that has changed: %v", changed)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*ChangedFileError](r.samePrograms()); !ok {
		t.Error("one that has gone is the same")
	}
}

// What a plug-in says is read before each repetition, and is what it was at the first.
func TestSameSystem(t *testing.T) {
	const manifest = "name: near\nkind: interconnect\nsummary: is tested\nhosts:\n  route: [client, service]\n  address: \"{{.Service.IP}}:8080\"\n"
	tree := fstest.MapFS{"near/system.yaml": &fstest.MapFile{Data: []byte(manifest)}}
	stack, err := system.Load(tree, "near")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := stack.Digest()
	if err != nil {
		t.Fatal(err)
	}
	r := runner{Options: Options{Stacks: map[string]*system.Stack{"near": stack}}}
	record := Record{Digests: map[string]string{"near": digest}}
	if err := r.sameSystem("near", record); err != nil {
		t.Errorf("as it was: %v", err)
	}
	tree["near/system.yaml"].Data = []byte(manifest + "# other\n")
	if changed, ok := errors.AsType[*ChangedError](r.sameSystem("near", record)); !ok || changed.System != "near" {
		t.Errorf("changed: %v", changed)
	}
	if err := r.sameSystem("near", Record{}); err != nil {
		t.Errorf("of a version that recorded none: %v", err)
	}
}
