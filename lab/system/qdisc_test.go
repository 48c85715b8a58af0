package system_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/system"
)

func TestKernelLacks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a queueing discipline is tried in a network namespace")
	}
	text := "name: test\nkind: interconnect\nsummary: is tested\nqdiscs: [pfifo, nonesuch]\nhosts:\n" + route + address
	stack, err := system.Load(fstest.MapFS{"test/system.yaml": {Data: []byte(text)}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	err = stack.KernelLacks()
	if lacks, ok := errors.AsType[*system.QdiscError](err); !ok || lacks.System != "test" || !slices.Equal(lacks.Qdiscs, []string{"nonesuch"}) {
		t.Errorf("it lacks %v", err)
	}
}
