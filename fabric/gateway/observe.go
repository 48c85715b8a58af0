package gateway

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/flow/journal"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/internal/loopback"
)

// observed is what an operator sees of a gateway.
type observed struct {
	ledger *ledger.Ledger
	// journal is nil where no log of flows is kept. It is set before anything is served.
	journal *journal.Journal
	entered atomic.Value // an admin.Phase
	// warned is the end of each certificate of which the log was told.
	warned map[string]time.Time
}

// sampleEvery is how often a gateway looks at what only time changes, and at what it is not
// told.
const sampleEvery = 2 * time.Second

func (g *Gateway) observe() {
	g.ledger, g.warned = ledger.New(g.record), map[string]time.Time{}
	g.enter(admin.Starting)
}

func (g *Gateway) enter(p admin.Phase) { g.entered.Store(p) }

// awaitReady enters the phase in which nothing more is prepared, and tells the log.
func (g *Gateway) awaitReady(ctx context.Context) {
	began, tick := time.Now(), time.NewTicker(readyEvery)
	defer tick.Stop()
	for !g.settled(time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	if g.entered.CompareAndSwap(admin.Serving, admin.Ready) {
		g.log.Info("ready", "after", time.Since(began).Round(time.Millisecond).String())
	}
}

// readyEvery is how often a gateway looks whether it is ready.
const readyEvery = 20 * time.Millisecond

func (g *Gateway) phase() admin.Phase { return g.entered.Load().(admin.Phase) }

// beginObserved has what the gateway does be seen, until the context ends.
func (g *Gateway) beginObserved(ctx context.Context) error {
	if g.config.Flows != "" {
		j, err := journal.Open(g.config.Flows, func(err error) {
			if err != nil {
				g.log.Error("flows are not recorded", "file", g.config.Flows, "why", err.Error())
				return
			}
			g.log.Info("flows are recorded again", "file", g.config.Flows)
		})
		if err != nil {
			return err
		}
		g.journal = j
	}
	if g.config.Admin != "" {
		if err := g.beginAdmin(ctx); err != nil {
			g.endObserved()
			return err
		}
	}
	g.running.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			g.warn(time.Now())
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				g.ledger.Sample(now)
				g.native.Sweep()
			}
		}
	})
	return nil
}

// endObserved writes what is not written yet. Nothing is served any more, but streams of
// peers may yet have to tell that they broke.
func (g *Gateway) endObserved() {
	if g.journal == nil {
		return
	}
	const look, looks = 10 * time.Millisecond, 100
	for range looks {
		if g.ledger.Open() == 0 {
			break
		}
		time.Sleep(look)
	}
	if err := g.journal.Close(); err != nil {
		g.log.Error("flows are not all recorded", "file", g.config.Flows, "why", err.Error())
	}
}

// beginAdmin answers operators.
func (g *Gateway) beginAdmin(ctx context.Context) error {
	if err := loopback.CheckAddress(g.config.Admin); err != nil {
		return err
	}
	l, err := net.Listen("tcp", g.config.Admin)
	if err != nil {
		return fmt.Errorf("listen for operators: %w", err)
	}
	g.ledger.Registry().MustRegister(admin.Metrics(g.status))
	h := admin.Handler(g.ledger.Registry(), g.phase, g.status)
	g.running.Go(func() {
		if err := loopback.Serve(ctx, l, h); err != nil {
			g.log.Error("no answer to operators any more", "why", err.Error())
		}
	})
	return nil
}

// record keeps what is known of a flow that is over.
func (g *Gateway) record(r flow.Record) {
	if g.journal != nil {
		g.journal.Put(r)
	}
}

// warn tells the log once of each certificate that should have been renewed.
func (g *Gateway) warn(now time.Time) {
	own := g.identity.Current()
	for _, l := range own.Lifetimes() {
		if l.Due(now) && !g.warned[l.Of].Equal(l.End) {
			g.warned[l.Of] = l.End
			g.log.Warn("a certificate was not renewed: less than a third of its life is left",
				"gateway", own.Name.String(), "of", l.Of, "until", l.End, "next", "see that 'skerry fabric renew --watch' runs")
		}
	}
}

// ResourcesFailed tells that the files could not be read anew.
func (g *Gateway) ResourcesFailed(err error) {
	g.log.Error("the resources stay as they were", "why", err.Error())
	g.ledger.ReloadFailed(ledger.ReloadResources)
}
