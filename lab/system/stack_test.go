package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// fake is a lab that carries nothing out: it writes down what was asked, and
// answers as its fields say.
type fake struct {
	log []string
	// env is what the commands have beside the environment.
	env []string
	// says is what a command prints; fails is how one ends.
	says  map[string]string
	fails map[string]error
	// dies has daemons end at once with these words in their log.
	dies map[string]string
	// refuses is how many dials find nobody; refused is what all after them find.
	refuses int
	refused error
	// deployed is what runs in pods.
	deployed []system.Deployment
	// installed is what runs at every node.
	installed []system.Installation
}

func (f *fake) Install(_ context.Context, i system.Installation) (system.Daemon, error) {
	f.installed = append(f.installed, i)
	return &daemon{fake: f, name: i.Name, done: make(chan struct{})}, nil
}

func (f *fake) Deploy(_ context.Context, d system.Deployment) (system.Daemon, error) {
	f.deployed = append(f.deployed, d)
	return &daemon{fake: f, name: d.Name, done: make(chan struct{})}, nil
}

func (f *fake) Run(_ context.Context, c host.Command) error {
	script := c.Args[len(c.Args)-1]
	f.log, f.env = append(f.log, fmt.Sprintf("run at %q: %s", c.Node, script)), append(f.env, c.Env...)
	_, _ = io.WriteString(c.Stdout, f.says[script])
	return f.fails[script]
}

func (f *fake) Start(c host.Command) (system.Daemon, error) {
	script := c.Args[len(c.Args)-1]
	f.log, f.env = append(f.log, fmt.Sprintf("start %s at %q: %s", c.Name, c.Node, script)), append(f.env, c.Env...)
	if err := f.fails[script]; err != nil {
		return nil, err
	}
	d := &daemon{fake: f, name: c.Name, done: make(chan struct{})}
	if words, ok := f.dies[c.Name]; ok {
		_, _ = io.WriteString(c.Stderr, words)
		d.err = errors.New("exit status 1")
		close(d.done)
	}
	return d, nil
}

func (f *fake) Dial(_ context.Context, node topology.Ref, address string) (net.Conn, error) {
	if f.refuses > 0 {
		f.refuses--
		return nil, errors.New("connection refused")
	}
	f.log = append(f.log, fmt.Sprintf("dial from %q: %s", node, address))
	if f.refused != nil {
		return nil, f.refused
	}
	near, far := net.Pipe()
	_ = far.Close()
	return near, nil
}

type daemon struct {
	*fake
	name string
	done chan struct{}
	err  error
}

func (d *daemon) Done() <-chan struct{} { return d.done }
func (d *daemon) Err() error            { return d.err }
func (d *daemon) Stop(time.Duration) (host.Use, error) {
	d.log = append(d.log, "stop "+d.name)
	return host.Use{Name: d.name}, nil
}

const whole = route + `  files: [sub/peer.cfg]
  stop:
    - {at: lab, run: "remove"}
  ready:
    - {at: client, tcp: "{{.Importer.IP}}:7080"}
  import:
    - {at: importer, run: "join {{.Captured.token}}"}
  export:
    - {at: exporter, run: "make-token", capture: token}
  start:
    - {at: exporter, run: "serve {{.Dir}}/sub/peer.cfg", daemon: gate}
    - {at: service, run: "serve other", daemon: side}
  prepare:
    - {at: lab, run: "certificates"}
` + address

func load(t *testing.T, hosts string) *system.Stack {
	t.Helper()
	tree := plugin(hosts)
	tree["test/sub/peer.cfg"] = &fstest.MapFile{Data: []byte("peer {{.Exporter.Host}}\n")}
	s, err := system.Load(tree, "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// up starts a stack and connects it.
func up(ctx context.Context, s *system.Stack, lab system.Runner, v system.Values) (*system.Running, error) {
	r, err := s.Start(ctx, lab, v)
	if err == nil {
		err = r.Connect(ctx)
	}
	return r, err
}

// Steps go by phase, whatever their order in the file; what one captures, later
// ones see; Stop undoes the rest.
func TestStepsInOrder(t *testing.T) {
	dir := t.TempDir()
	lab := &fake{says: map[string]string{"make-token": " secret\n"}, refuses: 3}
	s, err := up(t.Context(), load(t, whole), lab, values(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sub/peer.cfg")); err != nil || string(got) != "peer c1-head\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if got, err := s.Address(); err != nil || got != "10.1.0.2:8080" {
		t.Errorf("the address is %q, %v", got, err)
	}
	if err := s.Ended(); err != nil {
		t.Error(err)
	}
	uses, err := s.Stop()
	if err != nil || len(uses) != 2 || uses[0].Name != "gate" || uses[1].Name != "side" {
		t.Errorf("uses %+v, %v", uses, err)
	}
	want := []string{
		`run at "": certificates`,
		`start gate at "c1/head": serve ` + dir + `/sub/peer.cfg`,
		`start side at "c1/worker": serve other`,
		`run at "c1/head": make-token`,
		`run at "c2/head": join secret`,
		`dial from "c2/worker": 10.2.0.1:7080`,
		`run at "": remove`,
		`stop gate`, `stop side`,
	}
	if !slices.Equal(lab.log, want) {
		t.Errorf("carried out:\n%s\nwant:\n%s", strings.Join(lab.log, "\n"), strings.Join(want, "\n"))
	}
}

// What was started before a failure is stopped, and nothing after it begins.
func TestStopAfterFailure(t *testing.T) {
	lab := &fake{
		says:  map[string]string{"make-token": "step one\nfatal: no entropy\nbye\n"},
		fails: map[string]error{"make-token": errors.New("exit status 1")},
	}
	_, err := up(t.Context(), load(t, whole), lab, values(t, t.TempDir()))
	const want = `system test: export at exporter: "make-token": exit status 1: fatal: no entropy`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	after := lab.log[slices.Index(lab.log, `run at "c1/head": make-token`)+1:]
	if !slices.Equal(after, []string{`run at "": remove`, "stop gate", "stop side"}) {
		t.Errorf("after the failure: %v", after)
	}
}

func TestDaemonThatEnds(t *testing.T) {
	for words, want := range map[string]string{
		"starting\n[ALERT] cannot bind socket\nexiting.\n": "[ALERT] cannot bind socket",
		"one\ntwo\n": "two",
		"":           "it said nothing",
	} {
		lab := &fake{refuses: 1 << 30, dies: map[string]string{"side": words}}
		_, err := up(t.Context(), load(t, whole), lab, values(t, t.TempDir()))
		full := "system test: ready at client: side has ended (exit status 1): " + want
		if err == nil || err.Error() != full {
			t.Errorf("got  %v\nwant %s", err, full)
		}
		if !slices.Contains(lab.log, "stop gate") {
			t.Errorf("the other daemon runs on: %v", lab.log)
		}
	}
}

func TestReadyInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	lab := &fake{refuses: 1 << 30}
	_, err := up(ctx, load(t, whole), lab, values(t, t.TempDir()))
	if err == nil || !strings.Contains(err.Error(), "ready at client: 10.2.0.1:7080 does not answer: connection refused") {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(lab.log, "stop gate") || !slices.Contains(lab.log, "stop side") {
		t.Errorf("daemons run on: %v", lab.log)
	}
}

func TestDaemonThatDoesNotStart(t *testing.T) {
	lab := &fake{fails: map[string]error{"serve other": errors.New("no such node")}}
	_, err := up(t.Context(), load(t, whole), lab, values(t, t.TempDir()))
	if err == nil || err.Error() != "system test: start at service: no such node" {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(lab.log, "stop gate") {
		t.Errorf("the first daemon runs on: %v", lab.log)
	}
}
