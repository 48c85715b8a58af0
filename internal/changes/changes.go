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

// Watch calls a function whenever a file in a folder has changed since it was called,
// until the context ends.
func Watch(ctx context.Context, folder string, every time.Duration, do func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := stamp(folder)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := stamp(folder); now != last {
			last = now
			do()
		}
	}
}

// stamp is another text when something in a folder has changed.
func stamp(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
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
	return out.String()
}

// inode is the number of a file in its file system.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
