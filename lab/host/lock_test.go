package host

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// A Clean that looks at a lab holds its name for a moment: that must not fail
// an Up or a Down. A run holds it for good.
func TestAwaitLab(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lock lies in /run")
	}
	l := &Lab{state: state{Name: fmt.Sprintf("test-%d-lock", os.Getpid())}}
	var err error
	if l.lock, err = lockLab(l.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := awaitLab(l.Name); !errors.Is(err, ErrBusy) {
		t.Errorf("a lab that is held: %v, want ErrBusy", err)
	}
	released := make(chan error, 1)
	time.AfterFunc(lockPatience/4, func() { released <- l.unlock() })
	lock, err := awaitLab(l.Name)
	if err := errors.Join(err, <-released); err != nil {
		t.Fatal(err)
	}
	after := Lab{lock: lock}
	if err := after.unlock(); err != nil {
		t.Error(err)
	}
}
