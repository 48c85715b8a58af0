package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keysMost bounds how many keys there may be at the same time.
const keysMost = 4

// ErrNoKey is of a folder without a key that will do.
var ErrNoKey = errors.New("no key for reports")

// ReadKeys reads the keys of a folder, each a file, in the order of their names; a Secret
// of Kubernetes is mounted as such. The first signs, all are believed.
func ReadKeys(folder string) ([][]byte, error) {
	files, err := os.ReadDir(folder) // sorted
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	var keys [][]byte
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") { // a mount's own
			continue
		}
		key, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoKey, err)
		}
		if len(key) < KeyLeast {
			return nil, fmt.Errorf("%w: %s has %d bytes: give it %d, such as of 'head -c %d /dev/urandom'", ErrNoKey, filepath.Join(folder, f.Name()), len(key), KeyLeast, KeyLeast)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > keysMost {
		return nil, fmt.Errorf("%w: %s has %d files, not 1 to %d", ErrNoKey, folder, len(keys), keysMost)
	}
	return keys, nil
}
