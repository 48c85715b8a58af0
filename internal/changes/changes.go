// Package changes tells when files of a folder change. It looks for that every so often,
// at times, sizes and inodes, so that it works where a folder is replaced as a whole, as
// Kubernetes does with a Secret that is mounted, and on every file system. It reads no
// file. Start at Watch.
package changes

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// State is what a folder's files were at a time.
type State string

// Watch calls a function whenever a file in a folder has changed, until the context ends: at
// first since a state, which is to be taken before the files are read.
func Watch(ctx context.Context, folder string, since State, every time.Duration, do func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := Now(folder); now != since {
			since = now
			do()
		}
	}
}

// Now is the state of a folder.
func Now(folder string) State {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return State(err.Error())
	}
	var out strings.Builder
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(folder, e.Name())) // by way of links
		if err != nil {
			_, _ = fmt.Fprintln(&out, e.Name(), err)
			continue
		}
		_, _ = fmt.Fprintln(&out, e.Name(), info.Size(), info.ModTime().UnixNano(), inode(info))
	}
	return State(out.String())
}

// inode is the number of a file in its file system.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
