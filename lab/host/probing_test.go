package host

import (
	"os"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/cgroup"
)

// Who cleans up after killed runs leaves a group alone that another process just tries.
func TestCleanLeavesProbes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a control group is made")
	}
	err := probing(func(_ cgroup.Tree, group cgroup.Group) error {
		if err := group.Make(); err != nil {
			return err
		}
		removed, err := Clean(t.Context())
		if slices.ContainsFunc(removed, func(name string) bool { return strings.HasPrefix(name, "probe-") }) || !group.Exists() {
			t.Errorf("removed %v", removed)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
