package changes_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/internal/changes"
)

// A file that is written, replaced by one of the same size and time, or removed, is a
// change, and so is a folder that takes the place of another.
func TestWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "watched")
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	file := filepath.Join(dir, "a")
	must(os.WriteFile(file, []byte("1"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 100), make(chan struct{})
	since := changes.Now(dir)
	must(os.WriteFile(file, []byte("0000"), 0o600))
	go func() {
		changes.Watch(ctx, dir, since, time.Millisecond, func() { told <- struct{}{} })
		close(ended)
	}()
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		t.Error("a file that is written before it is watched is not told")
	}
	at := time.Now()
	for name, change := range map[string]func(){
		"a file that is written": func() { must(os.WriteFile(file, []byte("22"), 0o600)) },
		"a file that is replaced": func() {
			must(os.WriteFile(file+".next", []byte("33"), 0o600))
			must(os.Chtimes(file+".next", at, at))
			must(os.Rename(file+".next", file))
		},
		"a folder that is replaced": func() {
			must(os.Rename(dir, dir+".old"))
			must(os.Mkdir(dir, 0o700))
			must(os.WriteFile(file, []byte("33"), 0o600))
		},
	} {
		for len(told) > 0 {
			<-told
		}
		change()
		select {
		case <-told:
		case <-time.After(20 * time.Second):
			t.Errorf("%s is not told", name)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	<-ended
}
