package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/topology"
)

// stands holds that a program that is to stay has its folders as they are, is called at its
// node by both protocols' port, that its words and its end are told, and that nothing of it
// is left.
func stands(t *testing.T, on site) {
	c := open(t, on)
	folder := filepath.Join(t.TempDir(), "keys")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "tls.key"), []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w := cluster.Workload{
		Name: "gateway", Nodes: []topology.Ref{on.worker()}, Port: 8081, NodePort: 30081, TCP: true, UDP: true,
		Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8081"}, Folders: []string{folder},
	}
	words, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	s, err := c.Stand(t.Context(), w, words)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, on.lab, on.head(), on.at("worker", 30081))
	pid := pidOf(t, "0.0.0.0:8081")
	at := fmt.Sprintf("/proc/%d/root/keys/tls.key", pid)
	text, err := os.ReadFile(at)
	info, statErr := os.Stat(at)
	if err != nil || statErr != nil || string(text) != "secret" || info.Mode().Perm() != 0o440 {
		t.Errorf("it has %q, %v, %v, %v", text, info, err, statErr)
	}
	eventually(t, "words", func() error {
		text, err := os.ReadFile(words.Name())
		if err == nil && !strings.Contains(string(text), "ready") {
			err = fmt.Errorf("it has said %q", text)
		}
		return err
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
	_, err = c.Stand(t.Context(), w, words)
	if ended, ok := errors.AsType[*cluster.EndedError](err); !ok || !strings.Contains(ended.Said, "no-such") {
		t.Errorf("what cannot begin: %v", err)
	}
	if pods, err := c.Pods(t.Context(), w.Name); err != nil || len(pods) > 0 {
		t.Errorf("left are %+v, %v", pods, err)
	}
}
