package identity

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Locked does something to the folder of an authority that no other program does at the same
// time. It is not to be called within itself.
func Locked(folder string, do func() error) error {
	f, err := lock(folder)
	if err != nil {
		return err
	}
	defer f.Close() // which ends the lock
	return do()
}

// lock locks a folder: not one that another has taken the place of meanwhile.
func lock(folder string) (*os.File, error) {
	for {
		f, err := os.Open(folder)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", folder, err), f.Close())
		}
		locked, err := f.Stat()
		there, thereErr := os.Stat(folder)
		if err := errors.Join(err, thereErr); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if os.SameFile(locked, there) {
			return f, nil
		}
		_ = f.Close()
	}
}
