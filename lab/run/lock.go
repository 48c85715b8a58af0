package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockFile is held by the process that runs; the kernel lets go of it when that
// ends, however it ends. The file itself says nothing.
const lockFile = "lock"

// ErrRunning says that another process is at work in the run directory.
var ErrRunning = errors.New("run is still going")

// lock takes the run directory for this process. It is a lock of the open file,
// in place of flock, because Look can ask for it without taking it.
func (s store) lock() (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w: %s", ErrRunning, s.dir)
	}
	if err != nil {
		_ = f.Close() // the first error tells why
		return nil, err
	}
	return f, nil
}

// locked reports whether a process holds the lock.
func (s store) locked() (bool, error) {
	f, err := os.Open(filepath.Join(s.dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the lock: %w", err)
	}
	defer func() { _ = f.Close() }()
	holder := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &holder); err != nil {
		return false, fmt.Errorf("look at the lock: %w", err)
	}
	return holder.Type != unix.F_UNLCK, nil
}
