package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/internal/loopback"
	"skerry.dev/skerry/proxy/agent"
	"skerry.dev/skerry/proxy/cli"
)

// dump runs the command, and gives the files of what it has written.
func dump(t *testing.T, args ...string) (files map[string]string, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "proxy.tar.gz")
	c := cli.Command()
	var said bytes.Buffer
	c.SetOut(&said)
	c.SetErr(io.Discard)
	c.SetArgs(append([]string{"dump", "--out", out}, args...))
	c.SilenceErrors, c.SilenceUsage = true, true
	if err := c.ExecuteContext(t.Context()); err != nil {
		if _, there := os.Stat(out); there == nil {
			t.Error("it failed, and left a file")
		}
		return nil, err
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "skerry-proxy/")] = string(text)
	}
}

// A dump has all that the proxy can say, and names what it cannot.
func TestDump(t *testing.T) {
	answers := loopback.Handler(loopback.Answers{
		Metrics: prometheus.NewRegistry(),
		Phase:   func() (string, bool, bool) { return "starting", true, false },
		Documents: map[string]func(func(string) string) any{
			agent.AboutPath: func(func(string) string) any { return agent.About{Kernel: "6.18"} },
		},
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/profile") { // which takes five seconds
			answers.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, "a profile")
	}))
	defer s.Close()
	at := s.Listener.Addr().String()
	files, err := dump(t, "--admin", at)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(files["about.json"], `"kernel":"6.18"`) || files["cpu-5s.pb.gz"] != "a profile" || !strings.Contains(files["goroutines.txt"], "goroutine ") || files["heap.pb.gz"] == "" {
		t.Errorf("files %q", files)
	}
	if lacking := files["lacking.txt"]; !strings.Contains(lacking, "ready.txt: ") || !strings.Contains(lacking, "explain.json: ") || strings.Count(lacking, "\n") != 2 {
		t.Errorf("lacking %q", lacking)
	}
	s.Close()
	if _, err := dump(t, "--admin", at); err == nil || !strings.Contains(err.Error(), "no proxy answers") {
		t.Errorf("of nobody: %v", err)
	}
}
