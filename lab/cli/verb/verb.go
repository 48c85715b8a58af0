// Package verb is what the lab's verbs share: what they take from their process, where
// the lab's agent is, and which remedy an error has. It has no verb of its own. Start at
// Hint.
package verb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"skerry.dev/skerry/internal/console"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/impair/emulator"
)

// Env is what the command line takes from its process.
type Env struct {
	Version               string
	Args                  []string
	Stdin, Stdout, Stderr *os.File
}

// Agent finds skerry-agent: beside this program, which is where make puts it.
func Agent() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find skerry-agent: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), "skerry-agent")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: there is no %s", ErrNoAgent, path)
	}
	return path, nil
}

// ErrNoAgent says that there is no skerry-agent to start.
var ErrNoAgent = errors.New("cannot find skerry-agent beside skerry")

// CheckBackend refuses a link back end that there is not.
func CheckBackend(name string) error {
	known := []string{emulator.Auto, emulator.Netem, emulator.Userspace}
	if !slices.Contains(known, name) {
		return console.Usage(fmt.Errorf("no link back end %q", name), nearest.Hint(name, known))
	}
	return nil
}
