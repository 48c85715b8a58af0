package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

const (
	// servedPort is where what the gateways lead to listens, importPort where clients call.
	servedPort, importPort = "9000", "7080"
	gatewayReady           = `"msg":"ready"`
)

// place is where something of a system is, as its files name it.
type place struct{ IP, Port string }

// identities makes a fabric with an authority, two gateways of the exporter and one of the
// importer, whose resources are those of the system native.
const identities = `set -eu
skerry fabric init ca --name lab.skerry.dev
for cluster in exporter importer; do
  skerry fabric peer $cluster --ca ca --out $cluster-authority
  skerry fabric gateway g1 --peer $cluster-authority --out $cluster
  mkdir $cluster-resources
  mv $cluster.yaml $cluster-resources
done
skerry fabric gateway g2 --peer exporter-authority --out exporter2
`

// pair are gateways of two clusters, and a sink that they lead to.
type pair struct {
	*session
	bin, address string
	// sides by the folder of their identity.
	sides map[string]*side
}

// side is a gateway, as it is started.
type side struct {
	command host.Command
	process *host.Process
}

// second is where another gateway of the exporter's is, where one is asked for.
const second = topology.Ref("c1/head")

// gateways starts a pair: the exporter's at the service's node, the importer's at the
// client's, all of them with some flags. When it returns, all that can be prepared is.
func (b *bench) gateways(ctx context.Context, s *session, withSecond bool, flags ...string) (*pair, error) {
	at := map[string]place{}
	for role, ref := range map[string]topology.Ref{"Service": service, "Exporter": service, "Importer": client, "Second": second} {
		node, err := s.Topology.Node(ref)
		if err != nil {
			return nil, err
		}
		at[role] = place{node.Data.Addr().String(), servedPort}
	}
	p := &pair{session: s, bin: filepath.Dir(b.agent), address: net.JoinHostPort(at["Importer"].IP, importPort), sides: map[string]*side{}}
	if err := p.prepare(ctx, at, withSecond); err != nil {
		return nil, err
	}
	p.add("exporter", service, []string{"--resources", "exporter-resources", "--listen", at["Exporter"].IP + ":7443"})
	names := []string{"exporter"}
	if withSecond {
		p.add("exporter2", second, []string{"--resources", "exporter-resources", "--listen", at["Second"].IP + ":7443"})
		names = append(names, "exporter2")
	}
	p.add("importer", client, []string{"--resources", "importer-resources"})
	for _, name := range append(names, "importer") {
		p.sides[name].command.Args = append(p.sides[name].command.Args, flags...)
		if err := p.start(ctx, name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepare starts the sink, and makes files and identities.
func (p *pair) prepare(ctx context.Context, at map[string]place, withSecond bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := p.serve(ctx, servedPort, "sh", "-c", fmt.Sprintf("exec %s sink :%s >> %s", self, servedPort, p.sinkFile())); err != nil {
		return err
	}
	for _, name := range []string{"exporter.yaml", "importer.yaml"} {
		if err := render(filepath.Join(p.dir, name), "native/"+name, at); err != nil {
			return err
		}
	}
	if withSecond {
		file := filepath.Join(p.dir, "importer.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		one, two := `"`+at["Exporter"].IP+`:7443"`, `"`+at["Second"].IP+`:7443"`
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), one, one+", "+two, 1)), 0o600); err != nil {
			return err
		}
	}
	return p.shell(ctx, identities)
}

// shell runs a script in the session's folder, on the machine itself.
func (p *pair) shell(ctx context.Context, script string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "PATH="+p.bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

func (p *pair) add(name string, node topology.Ref, args []string) {
	p.sides[name] = &side{command: host.Command{
		Node: node, Name: "gateway-" + name, Dir: p.dir,
		Args: append([]string{filepath.Join(p.bin, "skerry-gateway"), "--identity", name}, args...),
	}}
}

// logFile is what a gateway prints.
func (p *pair) logFile(name string) string {
	return filepath.Join(p.dir, p.sides[name].command.Name+".log")
}

// start starts a gateway, and waits until it is ready.
func (p *pair) start(ctx context.Context, name string) error {
	one := p.sides[name]
	log, err := os.Create(p.logFile(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	c := one.command
	c.Stdout, c.Stderr = log, log
	if one.process, err = p.Start(c); err != nil {
		return err
	}
	const tries, wait = 1500, 20 * time.Millisecond
	for range tries {
		text, err := os.ReadFile(log.Name())
		if err != nil || strings.Contains(string(text), gatewayReady) {
			return err
		}
		select {
		case <-one.process.Done():
			return fmt.Errorf("%s has ended: %s", name, lastPart(string(text)))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return fmt.Errorf("%s is not ready after %s", name, tries*wait)
}

// sinkFile is what the sink prints.
func (s *session) sinkFile() string { return filepath.Join(s.dir, "sink") }

// render writes a file of a system with the places filled in.
func render(to, from string, at map[string]place) error {
	text, err := fs.ReadFile(systems.FS, from)
	if err != nil {
		return err
	}
	t, err := template.New(from).Parse(string(text))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	return errors.Join(t.Execute(&out, at), os.WriteFile(to, out.Bytes(), 0o600))
}

// consumed is what the gateways of a session have used: CPU time, and memory that is
// theirs now.
type consumed struct {
	cpu    time.Duration
	memory int64
}

// gatewayPids are the gateways' processes: those that work in the session's folder.
func (p *pair) gatewayPids() (pids []int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	for _, at := range all {
		folder, gone := os.Readlink(at + "/cwd")
		if gone != nil || folder != p.dir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(at)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// openFiles counts those of all gateways.
func (p *pair) openFiles() (n int, err error) {
	pids, err := p.gatewayPids()
	for _, pid := range pids {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return n, err
		}
		n += len(open)
	}
	return n, err
}

// containsArg says whether a command line (proc(5)) has an argument.
func containsArg(line []byte, arg string) bool {
	return slices.Contains(strings.Split(string(line), "\x00"), arg)
}

// freePort is one of the loopback that nobody has now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// gatewaysUse reads it of /proc (proc(5)).
func (p *pair) gatewaysUse() (consumed, error) {
	var all consumed
	pids, err := p.gatewayPids()
	if err != nil {
		return all, err
	}
	for _, pid := range pids {
		one, err := usedBy(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			return all, err
		}
		all.cpu, all.memory = all.cpu+one.cpu, all.memory+one.memory
	}
	return all, nil
}

func usedBy(pid string) (consumed, error) {
	threads, err := filepath.Glob(pid + "/task/*/schedstat")
	if err != nil {
		return consumed{}, err
	}
	var c consumed
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
		c.cpu += time.Duration(ns)
	}
	status, err := os.ReadFile(pid + "/status")
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); n == 1 {
			c.memory = kilobytes << 10
		}
	}
	return c, nil
}
