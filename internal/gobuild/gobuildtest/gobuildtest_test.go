package gobuildtest_test

import (
	"slices"
	"testing"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/gobuild/gobuildtest"
)

func TestTools(t *testing.T) {
	gobuildtest.Check(t, gobuild.Tools())
	if names := gobuild.Names(); !slices.IsSorted(names) {
		t.Errorf("the tools %v are not in order", names)
	}
}
