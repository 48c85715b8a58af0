package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"skerry.dev/skerry/fabric/flow"
)

// record is the one of a number.
func record(n int) flow.Record {
	return flow.Record{Begin: time.Unix(int64(n), 0).UTC(), Direction: flow.Import, Verdict: flow.Allowed}
}

func silent(t *testing.T) func(error) {
	return func(err error) { t.Errorf("told %v", err) }
}

// numbers are those of the records that a file has, with the one before.
func numbers(t *testing.T, path string) (all []int) {
	t.Helper()
	for r, err := range Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int(r.Begin.Unix()))
	}
	return all
}

// What is put is in the file, behind what was there, for nobody else to read.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flows")
	for n := range 2 {
		j, err := Open(path, silent(t))
		if err != nil {
			t.Fatal(err)
		}
		j.Put(record(n))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j.Written() != 1 || j.Dropped() != 0 {
			t.Errorf("%d written, %d dropped", j.Written(), j.Dropped())
		}
		j.Put(record(9)) // a stream that ends late harms nobody
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got := fmt.Sprint(numbers(t, path)); got != "[0 1]" {
		t.Errorf("got %s", got)
	}
	if _, err := Open(t.TempDir(), silent(t)); err == nil {
		t.Error("a folder is written to")
	}
	for _, err := range Read(path + "x") {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

// However much is written, two files of a bounded length hold the last of it.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "flows")
		const most, count = 4000, 200
		j, err := open(path, most, silent(t))
		if err != nil {
			t.Fatal(err)
		}
		for n := range count {
			j.Put(record(n))
			synctest.Wait()
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + ".1"} {
			if info, err := os.Stat(name); err != nil || info.Size() > most {
				t.Errorf("%v, %v", info, err)
			}
		}
		got := numbers(t, path)
		if len(got) < 10 || got[len(got)-1] != count-1 || got[len(got)-1]-got[0] != len(got)-1 {
			t.Errorf("it has %v", got)
		}
	})
}

// A file that was moved away is made anew, and one that was cut short goes on.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "flows")
		j, err := Open(path, silent(t))
		if err != nil {
			t.Fatal(err)
		}
		j.Put(record(1))
		synctest.Wait()
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		j.Put(record(2))
		synctest.Wait()
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		j.Put(record(3))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(numbers(t, path+".old"), numbers(t, path)); got != "[1] [3]" {
			t.Errorf("got %s", got)
		}
	})
}

// A disk that is full is told once, and what it does not take is counted; when it has
// room again that is told, and all that is in the file can be read.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "flows")
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 10)
		j, err := Open(path, func(err error) { told <- err })
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			j.Put(record(n))
			synctest.Wait()
		}
		if err := <-told; !errors.Is(err, syscall.ENOSPC) || len(told) > 0 || j.Dropped() != 3 {
			t.Errorf("told %v and %d more, %d dropped", err, len(told), j.Dropped())
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		j.Put(record(7))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil || j.Written() != 1 {
			t.Errorf("told %v, %d written", err, j.Written())
		}
		if got := fmt.Sprint(numbers(t, path)); got != "[7]" {
			t.Errorf("got %s", got)
		}
	})
}

// A small disk that fills up keeps whole lines alone.
func TestFillsUp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs a small file system: mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(dir, "flows")
		told := make(chan error, 1000)
		j, err := Open(path, func(err error) { told <- err })
		if err != nil {
			t.Fatal(err)
		}
		const count = 200
		for n := range count {
			j.Put(record(n))
			synctest.Wait()
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-told; !errors.Is(err, syscall.ENOSPC) || len(told) > 0 {
			t.Errorf("told %v and %d more", err, len(told))
		}
		if got := numbers(t, path); uint64(len(got)) != j.Written() || len(got) < 10 || len(got)+int(j.Dropped()) != count {
			t.Errorf("%d in the file, %d written, %d dropped", len(got), j.Written(), j.Dropped())
		}
	})
}

// Who puts never waits: with nobody to write, what the queue has no room for is counted.
func TestNeverBlocks(t *testing.T) {
	j := &Journal{queue: make(chan flow.Record, queueMax)}
	for n := range queueMax + 5 {
		j.Put(record(n))
	}
	if j.Dropped() != 5 {
		t.Errorf("%d dropped", j.Dropped())
	}
}
