package reports

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// signer signs by a key. What the key alone decides is reckoned once.
type signer struct {
	mu  sync.Mutex
	mac hash.Hash
}

func newSigner(key []byte) *signer { return &signer{mac: hmac.New(sha256.New, key)} }

func signers(keys [][]byte) []*signer {
	all := make([]*signer, len(keys))
	for i, key := range keys {
		all[i] = newSigner(key)
	}
	return all
}

// tag is what goes before a body that the key has signed.
func (s *signer) tag(body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mac.Reset()
	s.mac.Write(body)
	return s.mac.Sum(nil)[:tagSize]
}
