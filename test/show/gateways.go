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
	"strconv"
	"strings"
	"text/template"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/systems"
)

const (
	// servedPort is where what the gateways lead to listens, importPort where clients call.
	servedPort, importPort = "9000", "7080"
	gatewayReady           = `"msg":"ready"`
)

// place is where something of a system is, as its files name it.
type place struct{ IP, Port string }

// gateways starts a pair by the files of the system native, and a sink behind them: the
// exporter's at the service's node, the importer's at the client's. It returns where clients
// call, when all that can be prepared is.
func (b *bench) gateways(ctx context.Context, s *session, flags ...string) (string, error) {
	at := map[string]place{}
	for role, ref := range map[string]string{"Service": string(service), "Exporter": string(service), "Importer": string(client)} {
		node, err := s.Topology.Node(service)
		if ref == string(client) {
			node, err = s.Topology.Node(client)
		}
		if err != nil {
			return "", err
		}
		at[role] = place{node.Data.Addr().String(), servedPort}
	}
	for _, name := range []string{"exporter.yaml", "importer.yaml", "identities.sh"} {
		if err := render(filepath.Join(s.dir, name), "native/"+name, at); err != nil {
			return "", err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, err := s.serve(ctx, servedPort, "sh", "-c", fmt.Sprintf("exec %s sink :%s >> %s", self, servedPort, s.sinkFile())); err != nil {
		return "", err
	}
	bin := filepath.Dir(b.agent)
	prepare := exec.CommandContext(ctx, "sh", "identities.sh")
	prepare.Dir, prepare.Env = s.dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := prepare.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make identities: %w: %s", err, out)
	}
	for _, g := range []struct {
		side  string
		more  []string
		where host.Command
	}{
		{"exporter", []string{"--listen", at["Exporter"].IP + ":7443"}, host.Command{Node: service}},
		{"importer", nil, host.Command{Node: client}},
	} {
		args := append([]string{filepath.Join(bin, "skerry-gateway"), "--identity", g.side, "--resources", g.side + "-resources"}, g.more...)
		if err := s.gateway(ctx, g.where, "gateway-"+g.side, append(args, flags...)); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(at["Importer"].IP, importPort), nil
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

// gateway starts one, and waits until it is ready.
func (s *session) gateway(ctx context.Context, c host.Command, name string, args []string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	c.Name, c.Args, c.Dir, c.Stdout, c.Stderr = name, args, s.dir, log, log
	p, err := s.Start(c)
	if err != nil {
		return err
	}
	const tries, wait = 1000, 20 * time.Millisecond
	for range tries {
		text, err := os.ReadFile(log.Name())
		if err != nil || strings.Contains(string(text), gatewayReady) {
			return err
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s has ended: %s", name, lastPart(string(text)))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return fmt.Errorf("%s is not ready after %s", name, tries*wait)
}

// consumed is what the gateways of a session have used: CPU time, and memory that is
// theirs now.
type consumed struct {
	cpu    time.Duration
	memory int64
}

// gatewaysUse reads it of /proc (proc(5)).
func (s *session) gatewaysUse() (consumed, error) {
	var all consumed
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return all, err
	}
	for _, pid := range pids {
		at, err := os.Readlink(pid + "/cwd")
		if err != nil || at != s.dir {
			continue
		}
		one, err := usedBy(pid)
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
