package thread_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
)

var errAsked = errors.New("as asked")

func TestDoEndsItsThread(t *testing.T) {
	for range 20 { // some of which begin on the main thread
		var id int
		err := thread.Do(func() error {
			id = unix.Gettid()
			return errAsked
		})
		if !errors.Is(err, errAsked) {
			t.Fatalf("it says %v", err)
		}
		if id == unix.Getpid() {
			t.Fatal("it ran on the main thread")
		}
		if !gone(id) {
			t.Fatalf("thread %d is still there", id)
		}
	}
}

// gone waits until a thread has ended, which is soon after its goroutine has.
func gone(id int) bool {
	for range 1000 {
		if _, err := os.Stat(filepath.Join("/proc/self/task", strconv.Itoa(id))); errors.Is(err, fs.ErrNotExist) {
			return true
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	return false
}

func TestInFreshNetHasNoInterfaceButItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace is made")
	}
	err := thread.InFreshNet(func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			if i.Flags&net.FlagLoopback == 0 || i.Flags&net.FlagUp != 0 {
				t.Errorf("it has %s, %s", i.Name, i.Flags)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// All threads are asked, and those that begin later as well; their priority stays.
func TestBatch(t *testing.T) {
	var nice int
	err := thread.Do(func() error { // one more, which is there already
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 3); err != nil {
			return err
		}
		if err := thread.Batch(); err != nil {
			return err
		}
		attributes, err := unix.SchedGetAttr(0, 0)
		nice = int(attributes.Nice)
		return err
	})
	if err != nil || nice != 3 {
		t.Errorf("of nice 3 it is %d, %v", nice, err)
	}
	err = thread.Do(func() error {
		threads, err := os.ReadDir("/proc/self/task")
		for _, f := range threads {
			id, _ := strconv.Atoi(f.Name())
			attributes, err := unix.SchedGetAttr(id, 0)
			if err == nil && attributes.Policy != unix.SCHED_BATCH {
				t.Errorf("thread %s has policy %d", f.Name(), attributes.Policy)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
