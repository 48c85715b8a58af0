package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const planeCommand = "make show AREA=proxy-plane"

const (
	planeTurn        = 700 * time.Millisecond
	planeConnections = 16
	idleConnections  = 10_000
	// spareDescriptors are for all else.
	spareDescriptors = 200
	// planeCalls are the new connections a second of a turn that has some, and planeCalling how
	// long it is: of a proxy that has time to sleep between two of them.
	planeCalls   = 200
	planeCalling = 2 * time.Second
)

// showProxyPlane holds the data plane in user space to what anybody would write first, by
// turns on the same cores: in a network whose congestion control sets no timers. Those by which BBR
// paces (Linux's tcp_output.c, tcp_pace_kick) send in the name of whom they interrupt.
func showProxyPlane(ctx context.Context, b *bench) error {
	if err := b.apart(ctx); err != nil {
		return err
	}
	b.leavesNothing(ctx)
	return nil
}

func showPlaneApart(ctx context.Context, b *bench) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0); err != nil {
		return err
	}
	target, err := echoServer(ctx)
	if err != nil {
		return err
	}
	arms, stop, err := startArms(ctx, target, "plane", "copy", "splice", "bare")
	defer stop()
	if err != nil {
		return err
	}
	bare := arms[len(arms)-1]
	arms = arms[:len(arms)-1]
	speeds, costs := func(a *arm) []float64 { return a.speeds }, func(a *arm) []float64 { return a.costs }
	kept := fmt.Sprintf(" back and forth on %d kept connections", planeConnections)
	for _, c := range []contest{
		{what: "1 KB" + kept, turn: (*arm).turn, rounds: 96, size: 1 << 10, figure: speeds, of: "of the faster", bound: 0.95, more: true},
		{what: "1 MB" + kept, turn: (*arm).turn, rounds: 192, size: 1 << 20, figure: costs, of: "CPU of the cheaper", bound: 1},
		{what: fmt.Sprintf("%d new connections a second, 1 KB back and forth on each", planeCalls), turn: (*arm).calls, rounds: 24, size: 1 << 10, figure: costs, of: "CPU of the cheaper", bound: 1, floor: bare},
	} {
		if err := b.carries(ctx, arms, c); err != nil {
			return err
		}
	}
	fresh, stopFresh, err := startArms(ctx, target, "plane") // whose memory nothing else has made grow
	defer stopFresh()
	if err != nil {
		return err
	}
	return b.holdsIdle(ctx, fresh[0])
}

// leaksMost is how many connections of every bad kind are made.
const leaksMost = 100_000

// leavesNothing runs the data plane's own test with many connections.
func (b *bench) leavesNothing(ctx context.Context) {
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestNothingLeaks$", "./proxy/dataplane/userspace", "-connections", strconv.Itoa(leaksMost))
	out, err := c.CombinedOutput()
	seen := "what is in flight, and open, ends at 0"
	if err != nil {
		seen = strings.ReplaceAll(lastPart(string(out)), "\n", " ")
	}
	b.print(line{
		what: fmt.Sprintf("%d connections with resets, half-closes, refusals and clients that leave, through the proxy's data plane", leaksMost),
		seen: seen, bound: "in flight exactly 0, no descriptor left", command: planeCommand, pass: err == nil,
	})
}

// echoServer sends back what comes, in this process.
func echoServer(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				buffer := make([]byte, 64<<10)
				_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, buffer)
			}()
		}
	}()
	return l.Addr().String(), nil
}

// arm is a process that carries, and what was seen of it.
type arm struct {
	name, at string
	process  *exec.Cmd
	speeds   []float64 // requests a second, by round
	costs    []float64 // ns of CPU a request
}

// startArms starts carriers; stop ends those that were started.
func startArms(ctx context.Context, target string, names ...string) (arms []*arm, stop func(), err error) {
	stop = func() {
		for _, a := range arms {
			a.stop()
		}
	}
	for _, name := range names {
		a, err := startArm(ctx, name, target)
		if err != nil {
			return arms, stop, err
		}
		arms = append(arms, a)
	}
	return arms, stop, nil
}

// startArm starts a carrier before a target.
func startArm(ctx context.Context, name, target string) (*arm, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // to find a port that is free
	if err != nil {
		return nil, err
	}
	at := l.Addr().String()
	_ = l.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &arm{name: name, at: at, process: exec.CommandContext(ctx, self, "carry", name, at, target)}
	a.process.Stderr = os.Stderr
	a.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.process.Start(); err != nil {
		return nil, err
	}
	for range 1000 {
		if c, err := new(net.Dialer).DialContext(ctx, "tcp", at); err == nil {
			return a, c.Close()
		}
		time.Sleep(time.Millisecond)
	}
	a.stop()
	return nil, fmt.Errorf("%s does not listen", name)
}

func (a *arm) stop() {
	_ = a.process.Process.Kill()
	_ = a.process.Wait()
}

// cpu is what the carrier's threads have used so far.
func (a *arm) cpu() (used time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", a.process.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("%s has no threads: %w", a.name, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ns)
	}
	return used, nil
}

// resident is the carrier's memory in bytes.
func (a *arm) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", a.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text))
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// turn has clients ask through the arm for a while.
func (a *arm) turn(ctx context.Context, size int) error {
	before, err := a.cpu()
	if err != nil {
		return err
	}
	var asked atomic.Int64
	errs := make([]error, planeConnections)
	var all sync.WaitGroup
	begun := time.Now()
	for i := range errs {
		all.Go(func() { errs[i] = a.asks(ctx, size, begun.Add(planeTurn), &asked) })
	}
	all.Wait()
	took := time.Since(begun)
	after, err := a.cpu()
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	a.speeds = append(a.speeds, float64(asked.Load())/took.Seconds())
	a.costs = append(a.costs, float64(after-before)/float64(asked.Load()))
	return nil
}

// calls has a client ask on new connections, one after the other, at an even pace.
func (a *arm) calls(ctx context.Context, size int) error {
	before, err := a.cpu()
	if err != nil {
		return err
	}
	pace := time.NewTicker(time.Second / planeCalls)
	defer pace.Stop()
	const count = int(planeCalls * planeCalling / time.Second)
	begun := time.Now()
	for range count {
		<-pace.C
		if err := a.call(ctx, size); err != nil {
			return err
		}
	}
	took := time.Since(begun)
	after, err := a.cpu()
	a.speeds = append(a.speeds, float64(count)/took.Seconds())
	a.costs = append(a.costs, float64(after-before)/float64(count))
	return err
}

// call asks once, and waits until the connection is over at both ends.
func (a *arm) call(ctx context.Context, size int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.at)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(make([]byte, size)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// asks is one client: what it says comes back before it says more.
func (a *arm) asks(ctx context.Context, size int, until time.Time, asked *atomic.Int64) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.at)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	said, heard := make([]byte, size), make([]byte, size)
	for time.Now().Before(until) {
		wrote := make(chan error, 1)
		if size > 64<<10 { // more than buffers hold
			go func() {
				_, err := c.Write(said)
				wrote <- err
			}()
		} else {
			_, err := c.Write(said)
			wrote <- err
		}
		if _, err := io.ReadFull(c, heard); err != nil {
			return err
		}
		if err := <-wrote; err != nil {
			return err
		}
		asked.Add(1)
	}
	return nil
}

// contest is a figure in which the first arm is held to the better of the others, by all of
// the ratio's interval.
type contest struct {
	what   string
	turn   func(a *arm, ctx context.Context, size int) error
	rounds int // of turns of all arms
	size   int // bytes that go back and forth
	figure func(*arm) []float64
	of     string // what the ratio is of
	bound  float64
	more   bool // is better
	floor  *arm // what nobody can do better, where that is known
}

// carries holds a contest.
func (b *bench) carries(ctx context.Context, arms []*arm, c contest) error {
	turns := arms
	if c.floor != nil {
		turns = append(slices.Clone(arms), c.floor)
	}
	for _, a := range turns {
		a.speeds, a.costs = nil, nil
	}
	for range c.rounds {
		for _, a := range turns {
			if err := c.turn(a, ctx, c.size); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}
	better := arms[1]
	for _, a := range arms[2:] {
		if (medianOf(c.figure(a)).value > medianOf(c.figure(better)).value) == c.more {
			better = a
		}
	}
	ratio := medianOf(quotients(c.figure(arms[0]), c.figure(better)))
	pass, sign := ratio.low >= c.bound, ">="
	if !c.more {
		pass, sign = ratio.high < c.bound, "<"
	}
	var seen []string
	for _, a := range arms {
		seen = append(seen, fmt.Sprintf("%s %.0f/s, %.1f µs of CPU each", a.name, medianOf(a.speeds).value, medianOf(a.costs).value/1e3))
	}
	floor := ""
	if c.floor != nil {
		floor = fmt.Sprintf("%s µs of CPU each by the kernel's calls alone", medianOf(c.floor.costs).show(1e3, ""))
	}
	b.print(line{
		floor: floor,
		what:  fmt.Sprintf("%s, loopback, reno, n=%d: the proxy's data plane beside io.Copy and splice", c.what, c.rounds),
		seen:  fmt.Sprintf("%s; %s (%s) %s", strings.Join(seen, "; "), c.of, better.name, ratio.show(1, "")),
		bound: fmt.Sprintf("%s %g", sign, c.bound), command: planeCommand, pass: pass,
	})
	return nil
}

// quotients are those of each round, in which the machine is as fast for all.
func quotients(of, to []float64) []float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / to[i]
	}
	return all
}

// holdsIdle opens connections that do nothing.
func (b *bench) holdsIdle(ctx context.Context, a *arm) error {
	// Each has two descriptors of the carrier, and two of this process, which is both ends.
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	count := min(idleConnections, (int(limit.Cur)-spareDescriptors)/2) //nolint:gosec // far below
	before, err := a.resident()
	if err != nil {
		return err
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range count {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", a.at)
		if err != nil {
			return err
		}
		open = append(open, c)
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return err
		}
	}
	after, err := a.resident()
	if err != nil {
		return err
	}
	each := float64(after-before) / float64(count)
	fewer := ""
	if count < idleConnections {
		fewer = fmt.Sprintf(" (of %d: a process has no more than %d descriptors here)", idleConnections, limit.Cur)
	}
	b.print(line{
		what: fmt.Sprintf("%d idle connections%s through the proxy's data plane", count, fewer),
		seen: fmt.Sprintf("%.1f KiB of its memory each", each/1024), bound: "<= 24 KiB",
		command: planeCommand, pass: each <= 24<<10,
	})
	return nil
}
