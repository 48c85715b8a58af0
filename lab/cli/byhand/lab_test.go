package byhand

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// fake makes the state of a lab, which it holds until the test ends so that no Clean
// looks at it, and gives its name and folder.
func fake(t *testing.T, suffix, state string) (name, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the state lies in /run")
	}
	name = fmt.Sprintf("test-%d-%s", os.Getpid(), suffix)
	dir = filepath.Join(host.Root(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _, _ = os.RemoveAll(dir), os.Remove(lock.Name()), lock.Close(), os.Remove(host.Root()) })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lab.json"), []byte(state), 0o644); err != nil {
		t.Fatal(err)
	}
	return name, dir
}

// listed is what ps prints of a lab, "" where it leaves it out.
func listed(t *testing.T, name string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := new(commands).ps()
	cmd.SetArgs([]string{})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "LAB "+name+" ") {
			return line
		}
	}
	return ""
}

// A lab whose state cannot be read hides no other, and is told as broken.
func TestPsWithAnIllegibleState(t *testing.T) {
	name, _ := fake(t, "illegible", "{")
	if line := listed(t, name); !strings.Contains(line, "broken: lab "+name+": its state cannot be read") {
		t.Errorf("got %q", line)
	}
}

// A lab that goes down while ps looks at it is left out.
func TestPsWhileALabGoesDown(t *testing.T) {
	holder := exec.Command("sleep", "100")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}
	t.Cleanup(end)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", holder.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const startField = 21 // proc(5); this program's name has no space
	process := fmt.Sprintf(`{"pid": %d, "start": %s}`, holder.Process.Pid, strings.Fields(string(stat))[startField])
	name, dir := fake(t, "going", `{"topology": {"clusters": [{"name": "c1", "nodes": ["n"]}]}, "nodes": {"c1/n": `+process+`}, "wan": `+process+`}`)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "links.sock"))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 { // ps has found it whole, and looks further
			end()
			_ = os.RemoveAll(dir)
		}
		_, _ = w.Write([]byte("{}"))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	if line := listed(t, name); line != "" || asked.Load() != 2 {
		t.Errorf("got %q after %d orders", line, asked.Load())
	}
}
