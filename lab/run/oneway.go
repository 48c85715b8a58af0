package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/load/oneway"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/system"
)

const (
	// talkerProgram sends timed packets: it is of C, so that libraries can be loaded
	// before it.
	talkerProgram = "ktsn-talker"
	// packetsFile has each timed packet.
	packetsFile = "oneway.parquet"
	// listenerIdle is after what silence no packet is waited for any more, where no fault
	// of a timeline has made it.
	listenerIdle = 2 * time.Second
	// talkerLead is how long before its time a talker hands a packet over, where it does:
	// longer than a thread waits for its core here.
	talkerLead = 20 * time.Millisecond
)

// contact is a listener at the service's node and the talkers at the client's.
type contact struct {
	*attempt
	system.Contact
	// cycle of each talker, and the packets that it sends.
	cycle time.Duration
	count int
}

// driveOneWay has each thread of the cell be a talker, and keeps what a listener hears.
func (r *runner) driveOneWay(ctx context.Context, a *attempt, running *system.Running, address string) (uses []host.Use, err error) {
	c := contact{attempt: a}
	if c.Contact, err = running.OneWay(); err != nil {
		return nil, err
	}
	c.cycle = time.Duration(float64(a.Cell.Threads) / float64(a.Cell.Rate) * float64(time.Second))
	c.count = max(int(a.Cell.Duration.Std()/c.cycle), 1)
	toMono := clock.Mono() - clock.Real()
	listener, err := r.listen(ctx, c)
	if err != nil {
		return nil, err
	}
	use, err := r.talk(ctx, c, address)
	if err == nil {
		select {
		case <-listener.Done():
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	heard, stopErr := listener.Stop(stopGrace)
	if err := errors.Join(err, stopErr); err != nil {
		return []host.Use{use, heard}, err
	}
	if listener.Err() != nil {
		return nil, listener.silent()
	}
	a.result.Heard = new(oneway.Counts)
	if err := json.Unmarshal(listener.counts.Bytes(), a.result.Heard); err != nil {
		return nil, fmt.Errorf("listener said %q: %w", listener.counts.Bytes(), err)
	}
	return []host.Use{use, heard}, c.keep(toMono)
}

// listener is a process that hears packets, what it counted, and what else it said.
type listener struct {
	*host.Process
	counts bytes.Buffer
	said   notice
}

// silent is why it has ended without packets.
func (l *listener) silent() error {
	return fmt.Errorf("listener: %w", agentError(l.said.text.String(), l.Err()))
}

// listen starts the listener, and returns when it listens.
func (r *runner) listen(ctx context.Context, c contact) (*listener, error) {
	l := &listener{said: notice{ready: make(chan struct{})}}
	command := c.Listener
	command.Node, command.Name, command.Stdout, command.Stderr = r.Experiment.Topology.Service, serviceName, &l.counts, &l.said
	command.Env = append(command.Env, "GODEBUG=asyncpreemptoff=1") // it waits in the kernel, and is not to be woken for nothing
	command.Args = append(command.Args, r.Agent, "listener",
		"--listen", net.JoinHostPort("0.0.0.0", strconv.Itoa(workloadPort)), "--flows", strconv.Itoa(c.Cell.Threads),
		"--count", strconv.Itoa(c.count), "--idle", c.idle().String(), "--out", filepath.Join(c.dir, packetsFile))
	var err error
	if l.Process, err = r.lab.Start(command); err != nil {
		return nil, err
	}
	select {
	case <-l.said.ready:
		return l, nil
	case <-l.Done():
		err = l.silent()
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, stopErr := l.Stop(stopGrace)
	return nil, errors.Join(err, stopErr)
}

// idle is after what silence the listener gives up: talkers that have begun send their
// first packets within two cycles.
func (c contact) idle() time.Duration {
	idle := listenerIdle + 2*c.cycle
	if len(c.Cell.Scenario.Timeline) > 0 {
		idle += c.Cell.Duration.Std()
	}
	return idle
}

// talk runs all talkers to their end; one that fails ends the others.
func (r *runner) talk(ctx context.Context, c contact, address string) (host.Use, error) {
	hostname, port, err := net.SplitHostPort(address)
	if err != nil {
		return host.Use{}, err
	}
	talking, ctx := errgroup.WithContext(ctx)
	uses := make([]host.Use, c.Cell.Threads)
	for i := range uses {
		command := c.Talker
		command.Args = append(command.Args[:len(command.Args):len(command.Args)], talkerProgram, "-m", c.Sends,
			"-f", strconv.Itoa(i), "-n", strconv.Itoa(c.count), "-c", strconv.FormatInt(int64(c.cycle), 10),
			"-o", strconv.FormatInt(int64(oneway.Offset(i, c.Cell.Threads, c.cycle)), 10), "-l", strconv.FormatInt(int64(talkerLead), 10),
			"-s", strconv.Itoa(int(c.Cell.Size)), "-p", strconv.Itoa(oneway.Priority(i)), hostname, port)
		command.Node, command.Name = r.Experiment.Topology.Client, fmt.Sprintf("%s%d", loadName, i+1)
		talking.Go(func() (err error) {
			uses[i], err = r.talkOnce(ctx, command)
			return err
		})
	}
	err = talking.Wait()
	return together(r.Experiment.Topology.Client, uses), err
}

// talkOnce runs one talker to its end.
func (r *runner) talkOnce(ctx context.Context, command host.Command) (host.Use, error) {
	var problems bytes.Buffer
	command.Stderr = &problems
	use, ended, err := r.toItsEnd(ctx, command)
	if ended != nil {
		err = &ToolError{Tool: talkerProgram, Err: ended, Said: lastLines(problems.String())}
	}
	return use, err
}

// keep writes the packets as requests beside themselves.
func (c contact) keep(toMono int64) error {
	f, err := os.Open(filepath.Join(c.dir, packetsFile))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	packets, err := sample.ReadOneWay(f, info.Size())
	if err != nil {
		return err
	}
	return writeRequests(filepath.Join(c.dir, samplesFile), oneway.Requests(packets, c.cycle, toMono))
}

// readyWord begins the line that a listener says once packets can arrive.
const readyWord = "ready "

// notice keeps what is written, and tells when it is that something is ready.
type notice struct {
	text  bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

// Write keeps.
func (n *notice) Write(text []byte) (int, error) {
	written, err := n.text.Write(text)
	for line := range bytes.Lines(n.text.Bytes()) {
		if bytes.HasPrefix(line, []byte(readyWord)) {
			n.once.Do(func() { close(n.ready) })
		}
	}
	return written, err
}
