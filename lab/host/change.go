package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// changeLock is held while a process reads, alters and writes a lab's state:
	// links and faults are changed from several terminals.
	changeLock = "change.lock"
	// ChangeMax bounds what a caller of UndoWith does besides: all others wait meanwhile.
	// A node of Kubernetes boots in it, which takes minutes on a small board.
	ChangeMax = 5 * time.Minute
	// changePatience outlasts another process's change, which may wait for an emulator
	// that does not answer, too.
	changePatience = ChangeMax + 4*emulatorStart
)

// change has f alter what can change of a lab, as it is by now, while no other process
// does. What f alters it saves; where it fails, what was there before counts.
func (l *Lab) change(ctx context.Context, f func() error) error {
	lock, err := os.OpenFile(l.path(changeLock), os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab %s: %w", l.Name, ErrNoLab)
	}
	if err != nil {
		return fmt.Errorf("change lab %s: %w", l.Name, err)
	}
	defer func() { _ = lock.Close() }()
	if err := awaitLock(ctx, lock); err != nil {
		return fmt.Errorf("change lab %s: %w", l.Name, err)
	}
	now, err := readState(l.Name)
	if err != nil {
		return err
	}
	before := l.state
	// The rest is as it was made, and other goroutines read it.
	l.Bound, l.Links, l.Seed, l.Faults, l.Made = now.Bound, now.Links, now.Seed, now.Faults, now.Made
	if err := f(); err != nil {
		l.state = before
		return err
	}
	return nil
}

func awaitLock(ctx context.Context, lock *os.File) error {
	for range changePatience / lockPause {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
	return ErrBusy
}
