package agent

import (
	"errors"
	"net/netip"
	"slices"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/dataplane/userspace"
	"skerry.dev/skerry/proxy/reports"
	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

// frontKey is a port of UDP that clients call by an entry.
type frontKey struct {
	service snapshot.Key
	port    uint16
	entry   route.Entry
}

// openFront is where its datagrams are brought: the same port at each of Here. The target is
// one of the addresses by which it is called.
type openFront struct {
	target netip.AddrPort
	port   uint16
}

// change has everyone know what has changed. What cannot be done is told; what could be
// done is.
func (a *agent) change(c snapshot.Change) {
	fronts, err := a.table.Update(c)
	if err != nil {
		a.log.Error("a Service is not balanced", "reason", err)
	}
	for key, s := range c.Services {
		if s == nil {
			a.link.With(func(b *reports.Book) { b.Forget(key) })
			delete(a.pods.last, key)
			delete(a.sent, key)
			delete(a.refused, key)
			continue
		}
		a.refuse(key, s.Refusals)
	}
	if len(c.Nodes) > 0 {
		a.link.SetPeers(a.peers())
	}
	if fronts || a.behind {
		a.bring()
	}
	a.tellHealth()
}

// refuse tells users what of a Service is not carried, once.
func (a *agent) refuse(key snapshot.Key, why []string) {
	if slices.Equal(a.refused[key], why) {
		return
	}
	a.refused[key] = why
	for _, reason := range why {
		a.cluster.Refused(key, reason)
	}
}

// catchUp has the kernel bring, once a second, what it could not the last time, and load
// balancers answered at ports that others had.
func (a *agent) catchUp() {
	if a.tick%idleTicks != 0 || !a.behind && !a.past && !a.health.lacking {
		return
	}
	if a.behind || a.past {
		a.bring()
	}
	a.tellHealth()
}

// tellHealth has operators know how it is, and then load balancers who is served here, if
// anybody is.
func (a *agent) tellHealth() {
	now := a.lags.phase()
	if was := a.phase.Swap(now); was != now {
		a.log.Info(now, "node", a.Node, "port", a.Port)
	}
	a.health.set(a.table.Health(), now == ready)
}

// peers are where other nodes take reports.
func (a *agent) peers() map[string]netip.AddrPort {
	peers := map[string]netip.AddrPort{}
	for name, addrs := range a.table.Nodes() {
		for _, at := range addrs {
			if name != a.Node && at.Is4() == a.Here[0].Is4() {
				peers[name] = netip.AddrPortFrom(at, a.ReportPort)
				break
			}
		}
	}
	return peers
}

// bring has the kernel bring what clients call now.
func (a *agent) bring() {
	targets, lacking := map[frontKey]netip.AddrPort{}, false
	want := a.table.Fronts(a.RefusePort, func(p snapshot.Protocol, service *snapshot.Service, at netip.AddrPort, by route.Entry) uint16 {
		switch {
		case p == snapshot.TCP && service.Options.Dataplane == snapshot.DataplaneCopyLoop:
			return a.CopyPort
		case p == snapshot.TCP:
			return a.Port
		}
		key := frontKey{service.Key, at.Port(), by}
		port := a.front(key, at)
		if _, other := targets[key]; !other || a.fronts[key].target == at {
			targets[key] = at
		}
		lacking = lacking || port == 0
		return port
	})
	err := a.rules.Apply(want)
	past := errors.Is(err, capture.ErrPast)
	if past {
		if !a.past {
			a.log.Warn("connections are brought, but for some that were tried before", "reason", err)
		}
		err = nil
	}
	a.past = past
	if a.behind = lacking || err != nil; err != nil {
		a.log.Error("connections are brought as before", "reason", err)
		return
	}
	for key, f := range a.fronts {
		target, called := targets[key]
		switch {
		case !called:
			a.closeFront(f)
			delete(a.fronts, key)
		case target != f.target:
			a.moveFront(key, target)
		}
	}
}

// frontTries is how often a port is looked for that is free in every family.
const frontTries = 8

// front is the port of a front, which is opened where it is not; 0 where it cannot be.
func (a *agent) front(key frontKey, target netip.AddrPort) uint16 {
	if f, ok := a.fronts[key]; ok {
		return f.port
	}
	var err error
	for range frontTries {
		f := openFront{target: target}
		if err = a.openAt(&f); err == nil {
			a.fronts[key] = f
			return f.port
		}
		a.closeFront(f)
	}
	a.log.Error("a port of UDP is not carried", "service", key.service, "port", key.port, "reason", err)
	return 0
}

// openAt opens a front at each of Here, at the port that the first one got.
func (a *agent) openAt(f *openFront) error {
	for _, here := range a.Here {
		at, err := a.plane.OpenFront(userspace.Front{Target: f.target, At: netip.AddrPortFrom(here, f.port)})
		if err != nil {
			return err
		}
		f.port = at.Port()
	}
	return nil
}

// moveFront has a front be for another of the addresses by which it is called.
func (a *agent) moveFront(key frontKey, target netip.AddrPort) {
	f := a.fronts[key]
	f.target = target
	a.fronts[key] = f
	for _, here := range a.Here {
		a.plane.MoveFront(netip.AddrPortFrom(here, f.port), target)
	}
}

func (a *agent) closeFront(f openFront) {
	for _, here := range a.Here {
		a.plane.CloseFront(netip.AddrPortFrom(here, f.port))
	}
}
