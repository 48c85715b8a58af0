package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// limits are the files by which v1's controllers show that a group has them. A folder
// of v2 beside them has cpu.stat without the controller.
var limits = map[string]string{"cpu": "cpu.shares", "memory": "memory.limit_in_bytes", "pids": "pids.max"}

// Lacks names those of the controllers cpu, memory and pids that the group has not once
// it is delegated. In v2 it asks the root; in v1 it delegates the group to see.
func (g Group) Lacks(controllers ...string) (lacking []string, err error) {
	has := func(controller string) bool {
		return slices.ContainsFunc(g.delegated(), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, limits[controller]))
			return limits[controller] != "" && err == nil
		})
	}
	if g.tree.v2 {
		text, err := os.ReadFile(filepath.Join(g.tree.memory, "cgroup.controllers"))
		if err != nil {
			return nil, fmt.Errorf("list controllers of control groups: %w", err)
		}
		has = func(controller string) bool { return slices.Contains(strings.Fields(string(text)), controller) }
	} else if err := g.Delegate(); err != nil {
		return nil, err
	}
	for _, c := range controllers {
		if !has(c) {
			lacking = append(lacking, c)
		}
	}
	return lacking, nil
}
