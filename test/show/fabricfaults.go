package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

// wan is the link of the faults while nothing is wrong with it.
var wan = impair.Impairment{Delay: quantity.Duration(10 * time.Millisecond), Rate: 1e9}

// fault is one that a pair has to bear while it is called all the time.
type fault struct {
	name string
	// every is the pause between calls.
	every time.Duration
	// happens has it happen, and returns from when on calls are judged and by what.
	happens func(context.Context, *pair) (judgement, error)
}

// judgement is what calls have to meet: those begun since then, of all that there were.
type judgement struct {
	since time.Time
	most  time.Duration
	bound string
	// also is anything else that has to hold, in words where it does not.
	also func(context.Context) (string, error)
}

// showFabricFaults holds what clients see of a fabric to which something happens.
func showFabricFaults(ctx context.Context, b *bench) error {
	for _, f := range []fault{
		{"one of two gateways is killed", 20 * time.Millisecond, killed},
		{"one of two gateways hangs", 20 * time.Millisecond, hangs},
		{"the WAN is cut for 30 s", 50 * time.Millisecond, cut},
		{"10 % of packets are lost for a minute", 100 * time.Millisecond, lossy},
		{"the fabric's key is rotated, at 100 requests/s", 10 * time.Millisecond, rotated},
		{"a gateway is restarted with another beside it", 10 * time.Millisecond, upgraded},
	} {
		if err := b.bears(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (b *bench) bears(ctx context.Context, f fault) (err error) {
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.both(ctx, wan, impair.UnitPacket); err != nil {
		return err
	}
	p, err := b.gateways(ctx, s, true)
	if err != nil {
		return err
	}
	stop := p.calling(ctx, f.every)
	if err = pause(ctx, time.Second); err != nil {
		stop()
		return err
	}
	j, err := f.happens(ctx, p)
	calls := stop()
	if err != nil {
		return err
	}
	v := judge(calls, j)
	if j.also != nil {
		if v.also, err = j.also(ctx); err != nil {
			return err
		}
	}
	seen := v.String()
	if !v.holds() {
		said, err := os.ReadFile(p.logFile("importer"))
		if err != nil {
			return err
		}
		seen += "; its gateway said at last: " + lastPart(string(said))
	}
	b.print(line{what: f.name, seen: seen, bound: j.bound, pass: v.holds(), command: fabricCommand})
	return nil
}

// call is one of a client, on a new connection.
type call struct {
	begun time.Time
	took  time.Duration
	err   error
}

// patience is after which a call hangs.
const patience = 10 * time.Second

// calling calls over and over, whether earlier calls were answered or not, until it is
// stopped.
func (p *pair) calling(ctx context.Context, every time.Duration) (stop func() []call) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var all []call
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			running.Go(func() {
				c := call{begun: time.Now()}
				c.err = p.once(context.WithoutCancel(ctx))
				c.took = time.Since(c.begun)
				mu.Lock()
				all = append(all, c)
				mu.Unlock()
			})
		}
	})
	return func() []call {
		cancel()
		running.Wait()
		return all
	}
}

// once is one call.
func (p *pair) once(ctx context.Context) error {
	conn, err := p.Dial(ctx, client, p.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, echoLabel+"x"); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// borne is what became of calls.
type borne struct {
	calls, failed, hung, judged, late int
	slowest                           time.Duration
	why                               error
	also                              string
}

func (v borne) holds() bool { return v.judged > 0 && v.late == 0 && v.hung == 0 && v.also == "" }

func (v borne) String() string {
	text := fmt.Sprintf("%d calls, %d failed, %d hung; of the %d judged %d failed or were late, slowest %.0f ms", v.calls, v.failed, v.hung, v.judged, v.late, v.slowest.Seconds()*1e3)
	if v.why != nil {
		text += " (" + v.why.Error() + ")"
	}
	if v.also != "" {
		text += "; " + v.also
	}
	return text
}

func judge(calls []call, j judgement) (v borne) {
	var took []float64
	for _, c := range calls {
		v.calls++
		if c.err != nil {
			v.failed++
		}
		if errors.Is(c.err, os.ErrDeadlineExceeded) {
			v.hung++
		}
		if c.begun.Before(j.since) {
			continue
		}
		v.judged++
		took = append(took, float64(c.took))
		if c.err != nil || c.took > j.most {
			v.late++
			v.why = c.err
		}
	}
	if len(took) > 0 {
		v.slowest = time.Duration(measure.Sort(took).Max())
	}
	return v
}

// afterDeath is what holds of calls beside a gateway that answers no more from then on.
func afterDeath(at time.Time) judgement {
	return judgement{since: at.Add(time.Second), most: time.Second, bound: "new connections succeed within 1 s, 1 s later; none hang"}
}

func killed(ctx context.Context, p *pair) (judgement, error) {
	at := time.Now()
	if _, err := p.sides["exporter"].process.Stop(0); err != nil {
		return judgement{}, err
	}
	return afterDeath(at), pause(ctx, 5*time.Second)
}

func hangs(ctx context.Context, p *pair) (judgement, error) {
	pid, err := p.pidOf("exporter")
	if err != nil {
		return judgement{}, err
	}
	at := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return judgement{}, err
	}
	err = pause(ctx, 8*time.Second)
	return afterDeath(at), errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
}

// impaired has the WAN do something for some time, and tells when it is well again.
func (p *pair) impaired(ctx context.Context, does impair.Impairment, lasts time.Duration) (healed time.Time, err error) {
	if err := p.both(ctx, does, impair.UnitPacket); err != nil {
		return time.Time{}, err
	}
	err = pause(ctx, lasts)
	return time.Now(), errors.Join(err, p.both(ctx, wan, impair.UnitPacket))
}

func cut(ctx context.Context, p *pair) (judgement, error) {
	const lasts, settles = 30 * time.Second, 5 * time.Second
	down := wan
	down.Loss = 1
	healed, err := p.impaired(ctx, down, lasts)
	if err != nil {
		return judgement{}, err
	}
	return judgement{since: healed.Add(2 * time.Second), most: time.Second, bound: "service 2 s after the link is back; none hang"}, pause(ctx, settles)
}

func lossy(ctx context.Context, p *pair) (judgement, error) {
	const lasts, settles, more = time.Minute, 15 * time.Second, 128
	before, err := p.openFiles()
	if err != nil {
		return judgement{}, err
	}
	bad := wan
	bad.Loss = 0.1
	healed, err := p.impaired(ctx, bad, lasts)
	if err != nil {
		return judgement{}, err
	}
	leaks := func(context.Context) (string, error) {
		after, err := p.openFiles()
		if after-before > more {
			return fmt.Sprintf("%d files are open, %d before", after, before), err
		}
		return "", err
	}
	bound := fmt.Sprintf("service 2 s after it; at most %d files more are open", more)
	return judgement{since: healed.Add(2 * time.Second), most: time.Second, bound: bound, also: leaks}, pause(ctx, settles)
}

func rotated(ctx context.Context, p *pair) (judgement, error) {
	began := time.Now()
	const rotate = `set -eu
skerry fabric ca serve --ca ca --listen 127.0.0.1:%[1]s >serve.log 2>&1 &
serve=$!
trap 'kill $serve' EXIT
sleep 0.5
renew() {
  skerry fabric renew exporter-authority --at 127.0.0.1:%[1]s --gateway exporter --gateway exporter2
  skerry fabric renew importer-authority --at 127.0.0.1:%[1]s --gateway importer
}
skerry fabric ca rotate --ca ca
renew
sleep 2
skerry fabric ca retire --ca ca
renew
sleep 2
`
	port, err := freePort()
	if err != nil {
		return judgement{}, err
	}
	return judgement{since: began, most: patience, bound: "none fails"}, p.shell(ctx, fmt.Sprintf(rotate, port))
}

func upgraded(ctx context.Context, p *pair) (judgement, error) {
	began := time.Now()
	const drains = 40 * time.Second
	if _, err := p.sides["exporter"].process.Stop(drains); err != nil {
		return judgement{}, err
	}
	if err := p.start(ctx, "exporter"); err != nil {
		return judgement{}, err
	}
	return judgement{since: began, most: patience, bound: "none fails"}, pause(ctx, 3*time.Second)
}

// pidOf finds a gateway by the folder of its identity.
func (p *pair) pidOf(identity string) (int, error) {
	all, err := p.gatewayPids()
	if err != nil {
		return 0, err
	}
	for _, pid := range all {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && containsArg(line, identity) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no gateway of %s runs", identity)
}
