package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// said is what a program has, for whoever asks meanwhile.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// stands holds that a program that is to stay has its folders as they are, is called at its
// node by both protocols' port, that its words and its end are told, and that nothing of it
// is left.
func stands(t *testing.T, lab *host.Lab) {
	c := open(t, lab)
	folder := filepath.Join(t.TempDir(), "keys")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "tls.key"), []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w := cluster.Workload{
		Name: "gateway", Nodes: []topology.Ref{"c1/worker"}, Port: 8081, NodePort: 30081, TCP: true, UDP: true,
		Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8081"}, Folders: []string{folder},
	}
	var words said
	s, err := c.Stand(t.Context(), w, &words)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, lab, "c1/head", "10.1.0.2:30081")
	pid := pidOf(t, "0.0.0.0:8081")
	at := fmt.Sprintf("/proc/%d/root/keys/tls.key", pid)
	text, err := os.ReadFile(at)
	info, statErr := os.Stat(at)
	if err != nil || statErr != nil || string(text) != "secret" || info.Mode().Perm() != 0o440 {
		t.Errorf("it has %q, %v, %v, %v", text, info, err, statErr)
	}
	eventually(t, "words", func() error {
		if !strings.Contains(words.String(), "ready") {
			return fmt.Errorf("it has said %q", words.String())
		}
		return nil
	})
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("its end is not told")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "exit status 137") {
		t.Errorf("it has ended by %v", err)
	}
	if use, err := s.Stop(); err != nil || use.CPU <= 0 {
		t.Errorf("it has used %+v, %v", use, err)
	}
	w.Args = []string{"serve", "no-such", "--listen", "0.0.0.0:8081"}
	_, err = c.Stand(t.Context(), w, &words)
	if ended, ok := errors.AsType[*cluster.EndedError](err); !ok || !strings.Contains(ended.Said, "no-such") {
		t.Errorf("what cannot begin: %v", err)
	}
	if pods, err := c.Pods(t.Context(), w.Name); err != nil || len(pods) > 0 {
		t.Errorf("left are %+v, %v", pods, err)
	}
}
