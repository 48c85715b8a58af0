package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

const (
	client  = topology.Ref("c2/worker")
	service = topology.Ref("c1/worker")
	// serviceHost is the service's name as nodes know it.
	serviceHost = "c1-worker"
	servicePort = "8080"
)

// bench is what the measurements share.
type bench struct {
	out           io.Writer
	agent         string
	lines, failed int
}

// session is a lab of two clusters with two nodes each, and a folder for files.
type session struct {
	*host.Lab
	agent, dir string
	asking     asking
}

// asking is who asks, and whom.
type asking struct {
	node topology.Ref
	// within begins each command line: it enters a pod, or nothing.
	within     []string
	host, port string
}

// open takes a lab up; close it by its Close.
func (b *bench) open(ctx context.Context, congestion string) (*session, error) {
	t := topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}}},
		Service:  service, Client: client, Congestion: congestion,
	}
	lab, err := host.Up(ctx, t, host.Options{
		Name: fmt.Sprintf("show-%d", os.Getpid()), Agent: b.agent, Backend: "auto", Bound: true,
	})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return nil, errors.Join(err, lab.Down())
	}
	return &session{lab, b.agent, dir, asking{node: client, host: serviceHost, port: servicePort}}, nil
}

// Close takes the lab down.
func (s *session) Close() error { return errors.Join(s.Down(), os.RemoveAll(s.dir)) }

// both impairs the link between the clusters, each direction alike.
func (s *session) both(ctx context.Context, i impair.Impairment, unit impair.Unit) error {
	return s.SetLinks(ctx, []host.Link{
		{From: "c1", To: "c2", Unit: unit, Does: i}, {From: "c2", To: "c1", Unit: unit, Does: i},
	}, 1)
}

// packets sets both directions as both does, each packet apart.
func (s *session) packets(ctx context.Context, i impair.Impairment) error {
	return s.both(ctx, i, impair.UnitPacket)
}

// output runs a program where the client is and returns what it prints.
func (s *session) output(ctx context.Context, args ...string) (string, error) {
	var out, problems bytes.Buffer
	err := s.Run(ctx, host.Command{Node: s.asking.node, Name: "client", Args: append(slices.Clone(s.asking.within), args...), Stdout: &out, Stderr: &problems})
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(args, " "), err, problems.String(), lastPart(out.String()))
	}
	return out.String(), nil
}

func lastPart(text string) string {
	const most = 300
	return text[max(0, len(text)-most):]
}

// serve starts a program in the service's node and waits until it listens.
func (s *session) serve(ctx context.Context, port string, args ...string) (*host.Process, error) {
	p, err := s.Start(host.Command{Node: service, Name: "server", Args: args})
	if err != nil {
		return nil, err
	}
	node, err := s.Topology.Node(service)
	if err != nil {
		return nil, err
	}
	for range 1000 {
		conn, err := s.Dial(ctx, service, node.Data.Addr().String()+":"+port)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.Done():
			return nil, fmt.Errorf("%s has ended: %w", args[0], p.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
	_, err = p.Stop(0)
	return nil, errors.Join(fmt.Errorf("%s does not listen", args[0]), err)
}

// asks are n requests to the workload hello-world, of threads that start evenly over ramp
// and think between them.
type asks struct {
	connection  string
	n, threads  int
	ramp, think time.Duration
}

// request returns response times in ns; request 1 of a kept connection is left out, since
// it dials.
func (s *session) request(ctx context.Context, a asks) ([]float64, error) {
	spec, err := json.Marshal(load.Spec{
		Target: s.asking.host + ":" + s.asking.port, Workload: "hello-world", Iterations: a.n / a.threads, Warmup: 1,
		Threads: a.threads, Ramp: quantity.Duration(a.ramp), Think: quantity.Duration(a.think), Connection: a.connection,
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "spec.json")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		return nil, err
	}
	samples := filepath.Join(s.dir, "requests.parquet")
	if _, err := s.output(ctx, s.agent, "load", "--spec", file, "--out", samples); err != nil {
		return nil, err
	}
	rows, err := readRows(samples, sample.ReadRequests)
	if err != nil {
		return nil, err
	}
	var times []float64
	for _, r := range rows {
		if r.Error != "" {
			return nil, fmt.Errorf("a request failed: %s", r.Error)
		}
		if !r.Warmup {
			times = append(times, float64(r.ResponseNs()))
		}
	}
	return times, nil
}

// pace is the time from one ping to the next, however long one takes.
const pace = time.Millisecond

// pings returns round-trip times in ns.
func (s *session) pings(ctx context.Context, n int) ([]float64, error) {
	out, err := s.output(ctx, "ping", "-c", strconv.Itoa(n), "-i", fmt.Sprint(pace.Seconds()), s.asking.host)
	if err != nil {
		return nil, err
	}
	var times []float64
	for _, m := range regexp.MustCompile(`time=([0-9.]+) ms`).FindAllStringSubmatch(out, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		times = append(times, v*1e6)
	}
	return times[1:], nil // the first asks for the address as well
}

// curl returns time_total of n requests in ns: on one connection, but its first
// request, or each on a new one.
func (s *session) curl(ctx context.Context, connection string, n int) ([]float64, error) {
	args := []string{"curl", "-sS", "-w", "%{time_total}\\n", "-o", "/dev/null"}
	if connection == load.New {
		args = append(args, "-H", "Connection: close")
	}
	url := "http://" + s.asking.host + ":" + s.asking.port + "/"
	for i := range n + 1 {
		if i > 0 {
			args = append(args, "-o", "/dev/null")
		}
		args = append(args, url)
	}
	out, err := s.output(ctx, args...)
	if err != nil {
		return nil, err
	}
	var times []float64
	for _, field := range strings.Fields(out) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		times = append(times, v*1e9)
	}
	return times[1:], nil
}

// iperf is what iperf3 says of a transfer from the client to the service.
type iperf struct {
	End struct {
		Sent struct {
			Bps float64 `json:"bits_per_second"`
		} `json:"sum_sent"`
		Received struct {
			Bps float64 `json:"bits_per_second"`
		} `json:"sum_received"`
		Sum struct {
			Packets, LostPackets float64
			Seconds              float64
		} `json:"sum"`
	} `json:"end"`
	Error string `json:"error"`
}

// transfer runs iperf3 with further arguments and reads its totals.
func (s *session) transfer(ctx context.Context, args ...string) (result iperf, err error) {
	out, err := s.iperf(ctx, args...)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		return result, fmt.Errorf("read what iperf3 says: %w", err)
	}
	if result.Error != "" {
		return result, fmt.Errorf("iperf3: %s", result.Error)
	}
	return result, nil
}

// iperf runs iperf3 with further arguments, a server of its own each time, and
// returns its JSON.
func (s *session) iperf(ctx context.Context, args ...string) (out string, err error) {
	server, err := s.Start(host.Command{Node: service, Name: "server", Args: []string{"iperf3", "-s", "-1", "-J"}})
	if err != nil {
		return "", err
	}
	for range 200 { // until the server listens; a dial would end a server for one
		out, err = s.output(ctx, append([]string{"iperf3", "-J", "-c", serviceHost}, args...)...)
		if !refused(out, err) || ctx.Err() != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, stopErr := server.Stop(0)
	return out, errors.Join(err, stopErr)
}

// refused is that iperf3 has found no server. With -J some versions say so in what
// they print alone.
func refused(out string, err error) bool {
	const said = "Connection refused"
	return strings.Contains(out, said) || err != nil && strings.Contains(err.Error(), said)
}

// oneWay times n packets from the client to the service, in ns.
func (s *session) oneWay(ctx context.Context, rate, n int) ([]float64, error) {
	const port = "9000"
	file := filepath.Join(s.dir, "oneway.parquet")
	var ready readyWriter = make(chan struct{}, 1)
	listener, err := s.Start(host.Command{
		Node: service, Name: "listener", Stderr: ready,
		Args: []string{s.agent, "listener", "--listen", "0.0.0.0:" + port, "--count", strconv.Itoa(n), "--idle", "2s", "--out", file},
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-ready:
	case <-listener.Done():
	}
	_, talkErr := s.output(ctx, s.agent, "talker", "--target", serviceHost+":"+port, "--rate", strconv.Itoa(rate), "--count", strconv.Itoa(n))
	<-listener.Done()
	if _, err := listener.Stop(0); errors.Join(talkErr, err) != nil {
		return nil, errors.Join(talkErr, err)
	}
	rows, err := readRows(file, sample.ReadOneWay)
	if err != nil {
		return nil, err
	}
	var times []float64
	for _, r := range rows {
		if r.ReceivedNs > 0 {
			times = append(times, float64(r.ReceivedNs-r.SentNs))
		}
	}
	return times, nil
}

// readyWriter tells when a program has said that it is ready.
type readyWriter chan struct{}

// Write implements io.Writer.
func (w readyWriter) Write(b []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(b), nil
}

func readRows[T any](path string, read func(r readerAt, size int64) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return read(f, info.Size())
}

func delay(d time.Duration) impair.Impairment { return impair.Impairment{Delay: quantity.Duration(d)} }
