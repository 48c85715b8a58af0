// Package agent is the proxy of a node: it puts together who watches the cluster, who
// decides, who brings connections and who carries them, and has them measured ten times a
// second. Start at Run.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/internal/changes"
	"skerry.dev/skerry/internal/tick"
	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/copyloop"
	"skerry.dev/skerry/proxy/dataplane/userspace"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/reports"
	"skerry.dev/skerry/proxy/snapshot"
	"skerry.dev/skerry/proxy/usage"
)

// Config is what a proxy is told.
type Config struct {
	// Version is this program's.
	Version string `json:"version"`
	// Node is this one's name in Kubernetes.
	Node string `json:"node"`
	// Here are its addresses, at most one a family: connections are brought there.
	Here []netip.Addr `json:"here"`
	// Port is where brought connections of TCP arrive, CopyPort where those for the copy
	// loop do, ReportPort where reports do. At RefusePort nobody listens: who calls a Service
	// without endpoints is brought there.
	Port       uint16 `json:"port"`
	CopyPort   uint16 `json:"copyLoopPort"`
	ReportPort uint16 `json:"reportPort"`
	RefusePort uint16 `json:"refusePort"`
	// Keys is a folder of the keys that sign reports; "" is none, and no reports.
	Keys string `json:"keys"`
	// Groups is where the node's control groups are.
	Groups string `json:"cgroups"`
	// Admin is where operators ask, an ADDRESS:PORT of the loopback; "" is nowhere.
	Admin string `json:"admin"`
	// Drain is how long what is open may go on when it is asked to end. More is brought meanwhile.
	Drain time.Duration `json:"drainNs"`
}

// A Cluster is whom the proxy serves: package source has it.
type Cluster interface {
	// Watch tells all that there is, then each change, until ctx ends.
	Watch(ctx context.Context, tell func(snapshot.Change)) error
	// Refused tells users what of a Service is not carried.
	Refused(service snapshot.Key, why string)
	// Usage asks metrics.k8s.io what a Service's pods use, by node.
	Usage(ctx context.Context, service snapshot.Key) (map[string]snapshot.Usage, error)
}

// agent is one that runs.
type agent struct {
	Config
	cluster Cluster
	log     *slog.Logger
	start   time.Time
	table   *dispatch.Table
	planes
	rules   capturer
	link    *reports.Link
	pods    podUse
	metrics *metrics
	fronts  map[frontKey]openFront
	health  *health
	spoken
	lags
	phase atomic.Value // a string, once it has begun
}

// lags are of the kernel: it does not bring what it should, or goes on to take elsewhere what
// it took there in the past; and the proxy's own, that it ends.
type lags struct{ behind, past, ending bool }

// The phases of a proxy as operators are told them.
const (
	starting = "starting"
	ready    = "ready"
	behind   = "behind" // the kernel does not bring what it should
	draining = "draining"
)

func (l lags) phase() string {
	switch {
	case l.ending:
		return draining
	case l.behind:
		return behind
	default:
		return ready
	}
}

// A capturer has the kernel bring connections: capture.Rules does.
type capturer interface {
	Apply(want capture.Wanted) error
	Close() error
}

// planes are who carries, and who refuses.
type planes struct {
	plane   *userspace.Plane
	loop    *copyloop.Plane
	refusal *capture.Refusal
}

// Run serves until ctx ends, and on until what was open then has ended, for as long as Drain
// says: the next proxy begins when this one has ended. Then nobody is brought any more, and what
// has begun meanwhile may go on for rest.
func Run(ctx context.Context, config Config, cluster Cluster, log *slog.Logger) error {
	a := &agent{Config: config, cluster: cluster, log: log, start: time.Now(), fronts: map[frontKey]openFront{}, pods: podUse{last: map[snapshot.Key]reported{}}, spoken: spoken{sent: map[snapshot.Key]map[string]flown{}, refused: map[snapshot.Key][]string{}}, metrics: newMetrics()}
	a.table = dispatch.NewTable(config.Node, a.now)
	a.lookAtHome()
	keysRead := changes.Now(a.Keys) // before they are
	a.health = &health{log: log, here: config.Here, answers: map[snapshot.Key]*answer{}}
	if err := a.open(); err != nil {
		return errors.Join(err, a.close())
	}
	return errors.Join(a.serve(ctx, keysRead), a.close())
}

// now is the time since the proxy began.
func (a *agent) now() time.Duration { return time.Since(a.start) }

// open takes what the proxy needs of its node.
func (a *agent) open() (err error) {
	var listen, copied []netip.AddrPort
	for _, here := range a.Here {
		listen, copied = append(listen, netip.AddrPortFrom(here, a.Port)), append(copied, netip.AddrPortFrom(here, a.CopyPort))
	}
	if a.plane, err = userspace.New(userspace.Config{Listen: listen, Mark: capture.Mark}, chooser{a.table}); err != nil {
		return err
	}
	if a.loop, err = copyloop.New(copied, capture.Mark, chooser{a.table}); err != nil {
		return err
	}
	rules, err := capture.New(a.Here)
	if err != nil {
		return err
	}
	a.rules = rules
	if a.refusal, err = capture.Refuse(a.Here, a.RefusePort); err != nil {
		return err
	}
	if a.pods.groups, err = usage.New(a.Groups, usage.Cores()); err != nil {
		a.log.Warn("the usage of pods is not known: policies go without it", "reason", err)
	}
	book := reports.NewBook(a.Node, a.start.UnixNano())
	if a.link, err = reports.Listen(netip.AddrPortFrom(a.Here[0], a.ReportPort), book, a.now); err != nil {
		return err
	}
	if a.Keys != "" {
		keys, err := reports.ReadKeys(a.Keys)
		if err != nil {
			return err
		}
		a.link.SetKeys(keys)
	}
	return nil
}

// close gives it back.
func (a *agent) close() (err error) {
	a.health.close()
	if a.pods.groups != nil {
		a.pods.groups.Close()
	}
	if a.rules != nil {
		err = a.rules.Close()
	}
	if a.refusal != nil {
		err = errors.Join(err, a.refusal.Close())
	}
	if a.link != nil {
		err = errors.Join(err, a.link.Close())
	}
	if a.plane != nil {
		err = errors.Join(err, a.plane.Close())
	}
	if a.loop != nil {
		err = errors.Join(err, a.loop.Close())
	}
	return err
}

// serve has all parts go on until it is asked to end and nothing is open, or one of them cannot.
// The keys are what their folder had in a state.
func (a *agent) serve(asked context.Context, keysRead changes.State) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(asked))
	defer cancel(nil)
	if err := a.answer(ctx); err != nil {
		return err
	}
	ticker, err := tick.New(reports.Every)
	if err != nil {
		return err
	}
	told := make(chan snapshot.Change)
	part := func(name string, run func() error) chan error {
		done := make(chan error, 1)
		go func() {
			err := run()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			done <- err
			cancel(err)
		}()
		return done
	}
	brought, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	carried := part("data plane", func() error { return a.plane.Run(brought, rest) })
	copied := part("copy loop", func() error { return a.loop.Run(brought, rest) })
	watched := part("watch", func() error {
		return a.cluster.Watch(ctx, func(c snapshot.Change) {
			select {
			case told <- c:
			case <-ctx.Done():
			}
		})
	})
	learned := part("metrics", func() error {
		a.ask(ctx)
		return nil
	})
	renewed := part("keys", func() error {
		a.watchKeys(ctx, keysRead, keysEvery)
		return nil
	})
	go func() {
		a.drain(ctx, asked)
		cancel(nil)
	}()
	a.follow(ctx, asked.Done(), told, ticker.C)
	// Who was brought before is taken. The tables stay, empty: with the last one the kernel would
	// translate no packet of what is open.
	left := a.rules.Apply(capture.Wanted{})
	if errors.Is(left, capture.ErrPast) { // it was told as it began
		left = nil
	}
	err = errors.Join(ticker.Close(), left)
	time.Sleep(handshake)
	leave()
	err = errors.Join(err, <-watched, <-learned, <-renewed, <-carried, <-copied, a.link.Close())
	a.link = nil
	return err
}

const (
	// handshake is how long who was brought before the end may take to be there, and rest how
	// long what began last may take.
	handshake = 100 * time.Millisecond
	rest      = time.Second
)

// drain waits until a proxy that is asked to end has ended what was open, or may no longer.
func (a *agent) drain(ctx, asked context.Context) {
	select {
	case <-asked.Done():
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, a.Drain)
	defer cancel()
	a.plane.AwaitOpen(ctx)
}

// keysEvery is how often is looked whether there are other keys.
const keysEvery = 10 * time.Second

// watchKeys has reports signed by other keys when these change, at first since a state, until
// ctx ends; where they cannot be read, by those of before.
func (a *agent) watchKeys(ctx context.Context, since changes.State, every time.Duration) {
	if a.Keys == "" {
		<-ctx.Done()
		return
	}
	changes.Watch(ctx, a.Keys, since, every, func() {
		keys, err := reports.ReadKeys(a.Keys)
		if err != nil {
			a.log.Error("the keys stay as they were", "reason", err)
			return
		}
		a.link.SetKeys(keys)
		a.log.Info("new keys", "number", len(keys))
	})
}

// follow takes changes, and measures with each tick, until ctx ends. Once it is asked to end
// load balancers are to send nobody.
func (a *agent) follow(ctx context.Context, asked <-chan struct{}, told <-chan snapshot.Change, ticks <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			asked, a.ending = nil, true
			a.tellHealth()
		case c := <-told:
			a.change(c)
		case <-ticks:
			a.measure()
			a.catchUp()
			if a.tick%homeTicks == 0 {
				a.lookAtHome()
			}
		}
	}
}

// homeTicks is how seldom it is looked up which addresses this node has.
const homeTicks = 10 * idleTicks

// lookAtHome has the table know the addresses of this node's interfaces; where they cannot be
// had those stay that were.
func (a *agent) lookAtHome() {
	if own, err := capture.OwnAddrs(); err == nil {
		a.table.Own(own)
	}
}

// chooser has the table choose for the data plane.
type chooser struct{ table *dispatch.Table }

func (c chooser) Choose(call dataplane.Call) (dataplane.Choice, error) {
	protocol := snapshot.TCP
	if call.UDP {
		protocol = snapshot.UDP
	}
	h, err := c.table.Choose(protocol, call.Target, call.Client, call.Tried...)
	if err != nil {
		return dataplane.Choice{}, err
	}
	return dataplane.Choice{Endpoint: h.Endpoint, Token: h}, nil
}

func (c chooser) Answered(choice *dataplane.Choice) {
	c.table.Answered(choice.Token.(*dispatch.Held))
}

func (c chooser) Done(choice *dataplane.Choice, o dataplane.Outcome) {
	came := [...]balance.Outcome{dataplane.Served: balance.Served, dataplane.Failed: balance.Failed, dataplane.Gone: balance.Void}
	c.table.Done(choice.Token.(*dispatch.Held), came[o])
}

func (c chooser) Serves(choice *dataplane.Choice) bool {
	return c.table.Serves(choice.Token.(*dispatch.Held))
}
