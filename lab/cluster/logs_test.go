package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A container's log is those of its starts, in their order, without frames.
func TestCopyOfAContainer(t *testing.T) {
	dir := t.TempDir()
	for start, text := range map[string]string{
		"10": "T stdout F third\n", "9": "T stderr F second\nT stdout P and ha", "0": "T stdout P fi\nT stdout F rst\n",
	} {
		write(t, filepath.Join(dir, start+".log"), text)
	}
	var out bytes.Buffer
	l := Log{pattern: filepath.Join(dir, "*.log"), framed: true}
	if err := l.Copy(t.Context(), &out, false); err != nil || out.String() != "first\nsecond\nthird\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

// buffer is written and read at the same time.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// What is said while a log is followed comes as it is said, also of the next start, and
// of a file that was begun anew.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "0.log")
	write(t, first, "T stdout F one\nT stdout F tw")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out buffer
	ended := make(chan error, 1)
	l := Log{pattern: filepath.Join(dir, "*.log"), framed: true}
	go func() { ended <- l.Copy(ctx, &out, true) }()
	expect := func(want string) {
		t.Helper()
		for range 500 {
			if out.String() == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("got %q, want %q", out.String(), want)
	}
	expect("one\n")
	write(t, first, "o\n")
	expect("one\ntwo\n")
	if err := os.Truncate(first, 0); err != nil {
		t.Fatal(err)
	}
	write(t, first, "T stdout F new\n")
	expect("one\ntwo\nnew\n")
	write(t, filepath.Join(dir, "1.log"), "T stdout F again\n")
	expect("one\ntwo\nnew\nagain\n")
	if err := os.RemoveAll(dir); err != nil { // its lab goes down
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it goes on without a log")
	}
}

func TestRoom(t *testing.T) {
	const free = 1_024_000_000
	if err := checkRoom(256_000_000, 2, free); err != nil { // exactly as much
		t.Error(err)
	}
	err := checkRoom(256_000_001, 2, free)
	if want := "no room for the images: nodes keep them in memory: 2 nodes need 1024 MB, and 1024 MB are free"; !errors.Is(err, ErrNoRoom) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
