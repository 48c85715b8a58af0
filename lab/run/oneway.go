package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// packetsFile has each timed packet, listenerLog what the listener said.
	packetsFile = "oneway.parquet"
	listenerLog = serviceName + ".log"
	// listenerIdle is after what silence no packet is waited for any more, where no fault
	// of a timeline has made it.
	listenerIdle = 2 * time.Second
	// talkerLead is how long before its time a talker hands a packet over, where it does:
	// longer than a thread waits for its core here.
	talkerLead = 20 * time.Millisecond
	// trafficClasses of IEEE 802.1Q: talkers take turns in them, from the highest.
	trafficClasses = 8
)

// Heard is what became of timed packets beside those that arrived once, in order.
type Heard struct {
	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Reordered  int `json:"reordered"`
	Strays     int `json:"strays"`
	// Overflowed are lost to the listener's own full buffer.
	Overflowed int `json:"overflowed"`
}

// contact is a listener at the service's node and the talkers at the client's.
type contact struct {
	*attempt
	sends            string
	talker, listener host.Command
	// cycle of each talker, and the packets that it sends.
	cycle time.Duration
	count int
}

// driveOneWay has each thread of the cell be a talker, and keeps what a listener hears.
func (r *runner) driveOneWay(ctx context.Context, a *attempt, running *system.Running, address string) (uses []host.Use, err error) {
	c := contact{attempt: a}
	if c.sends, c.talker, c.listener, err = running.OneWay(); err != nil {
		return nil, err
	}
	c.cycle = time.Duration(float64(a.Cell.Threads) / float64(a.Cell.Rate) * float64(time.Second))
	c.count = max(int(a.Cell.Duration.Std()/c.cycle), 1)
	toMono := clock.Mono() - clock.Real()
	var said bytes.Buffer
	listener, err := r.listen(ctx, c, &said)
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
		return nil, c.silent(listener.Err())
	}
	a.result.Heard = new(Heard)
	if err := json.Unmarshal(said.Bytes(), a.result.Heard); err != nil {
		return nil, fmt.Errorf("listener said %q: %w", said.Bytes(), err)
	}
	return []host.Use{use, heard}, c.keep(toMono)
}

// listen starts the listener, and returns when it listens.
func (r *runner) listen(ctx context.Context, c contact, said io.Writer) (*host.Process, error) {
	log, err := os.Create(filepath.Join(c.dir, listenerLog))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has it still
	ready := &notice{is: make(chan struct{}), to: log}
	command := c.listener
	command.Node, command.Name, command.Stdout, command.Stderr = r.Experiment.Topology.Service, serviceName, said, ready
	command.Env = append(command.Env, "GODEBUG=asyncpreemptoff=1") // it waits in the kernel, and is not to be woken for nothing
	command.Args = append(command.Args, r.Agent, "listener",
		"--listen", net.JoinHostPort("0.0.0.0", strconv.Itoa(workloadPort)), "--flows", strconv.Itoa(c.Cell.Threads),
		"--count", strconv.Itoa(c.count), "--idle", c.idle().String(), "--out", filepath.Join(c.dir, packetsFile))
	listener, err := r.lab.Start(command)
	if err != nil {
		return nil, err
	}
	select {
	case <-ready.is:
		return listener, nil
	case <-listener.Done():
		err = c.silent(listener.Err())
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, stopErr := listener.Stop(stopGrace)
	return nil, errors.Join(err, stopErr)
}

// silent is why a listener has ended without packets.
func (c contact) silent(ended error) error {
	return fmt.Errorf("listener: %w", said(filepath.Join(c.dir, listenerLog), ended))
}

// idle is after what silence the listener gives up.
func (c contact) idle() time.Duration {
	if len(c.Cell.Scenario.Timeline) > 0 {
		return c.Cell.Duration.Std() + listenerIdle
	}
	return listenerIdle
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
		command := c.talker
		command.Args = append(command.Args[:len(command.Args):len(command.Args)], talkerProgram, "-m", c.sends,
			"-f", strconv.Itoa(i), "-n", strconv.Itoa(c.count), "-c", strconv.FormatInt(int64(c.cycle), 10),
			"-o", strconv.FormatInt(int64(c.cycle)*int64(i)/int64(c.Cell.Threads), 10), "-l", strconv.FormatInt(int64(talkerLead), 10),
			"-s", strconv.Itoa(int(c.Cell.Size)), "-p", strconv.Itoa(trafficClasses-1-i%trafficClasses), hostname, port)
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
	process, err := r.lab.Start(command)
	if err != nil {
		return host.Use{}, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
	}
	use, err := process.Stop(stopGrace)
	if process.Err() != nil && ctx.Err() == nil {
		return use, &ToolError{Tool: talkerProgram, Err: process.Err(), Said: lastLines(problems.String())}
	}
	return use, errors.Join(err, ctx.Err())
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

// readyWord is what a listener says once packets can arrive.
const readyWord = "ready"

// notice passes on what is written, and tells when it is that something is ready.
type notice struct {
	once sync.Once
	is   chan struct{}
	to   io.Writer
}

// Write passes on.
func (n *notice) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(readyWord)) {
		n.once.Do(func() { close(n.is) })
	}
	return n.to.Write(text)
}
