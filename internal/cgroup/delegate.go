package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Path of the group below the root of each hierarchy, as runtimes take it.
func (g Group) Path() string { return "/" + g.path }

// delegated are the folders that Delegate may have made.
func (g Group) delegated() []string {
	dirs := g.dirs()
	for _, root := range g.tree.others {
		dirs = append(dirs, filepath.Join(root, g.path))
	}
	return dirs
}

// Delegate makes the group for a program that makes groups of its own below it, as a
// container runtime does: in v1 in every hierarchy, in v2 with the controllers that it
// needs, which the root then passes on to all. No process may be in it itself.
func (g Group) Delegate() error {
	if g.tree.v2 {
		if err := makeDir(g.dirs()[0]); err != nil {
			return fmt.Errorf("delegate control group: %w", err)
		}
		text, err := os.ReadFile(filepath.Join(g.tree.memory, "cgroup.controllers"))
		if err == nil {
			err = g.passDown(wanted(string(text)))
		}
		if err != nil {
			return fmt.Errorf("delegate control group: %w", err)
		}
		return nil
	}
	for _, dir := range g.delegated() {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("delegate control group: %w", err)
		}
	}
	for _, root := range g.tree.others {
		if err := g.inheritCPUs(root); err != nil {
			return fmt.Errorf("delegate control group: %w", err)
		}
	}
	return nil
}

// wanted are those of the controllers that a container runtime needs, as orders.
func wanted(controllers string) string {
	var orders []string
	for _, c := range strings.Fields(controllers) {
		if slices.Contains([]string{"cpu", "cpuset", "memory", "pids", "hugetlb"}, c) {
			orders = append(orders, "+"+c)
		}
	}
	return strings.Join(orders, " ")
}

// inheritCPUs gives each group of a v1 hierarchy the CPUs and memory nodes of the
// one above, where it is one of cpuset: without, a group takes no process.
func (g Group) inheritCPUs(root string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		above := root
		for _, name := range strings.Split(g.path, "/") {
			dir := filepath.Join(above, name)
			text, err := os.ReadFile(filepath.Join(above, file))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // not the hierarchy of cpuset
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), text, 0)
			}
			if err != nil {
				return err
			}
			above = dir
		}
	}
	return nil
}
