// Package planetest chooses endpoints for a data plane under test, and counts what came of
// them. Start at Chooser.
package planetest

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"skerry.dev/skerry/proxy/dataplane"
)

// Chooser takes endpoints in turn, or always the first that was not tried.
type Chooser struct {
	mu        sync.Mutex
	endpoints []netip.AddrPort
	first     bool
	calls     []dataplane.Call
	chosen    int
	answered  int
	done      map[dataplane.Outcome]int
	open      chan struct{}
}

// New is a Chooser of endpoints, HOST:PORT each.
func New(endpoints ...string) *Chooser {
	c := &Chooser{done: map[dataplane.Outcome]int{}, open: make(chan struct{})}
	close(c.open)
	c.Serve(endpoints...)
	return c
}

// Serve has others be chosen from now on, or nobody.
func (c *Chooser) Serve(endpoints ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints = nil
	for _, e := range endpoints {
		c.endpoints = append(c.endpoints, netip.MustParseAddrPort(e))
	}
}

// ServeFirst has the first of others be chosen from now on which was not tried for a call, and
// the first where all were.
func (c *Chooser) ServeFirst(endpoints ...string) {
	c.Serve(endpoints...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = true
}

// Hold has nothing be chosen until what it returns is called.
func (c *Chooser) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.open = held
	return sync.OnceFunc(func() { close(held) })
}

var errNobody = errors.New("nobody serves")

// Choose is of dataplane.Chooser.
func (c *Chooser) Choose(call dataplane.Call) (dataplane.Choice, error) {
	c.mu.Lock()
	c.calls = append(c.calls, call)
	open := c.open
	c.mu.Unlock()
	<-open
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.endpoints) == 0 {
		return dataplane.Choice{}, errNobody
	}
	e := c.endpoints[c.chosen%len(c.endpoints)]
	if c.first {
		i := slices.IndexFunc(c.endpoints, func(e netip.AddrPort) bool { return !slices.Contains(call.Tried, e) })
		e = c.endpoints[max(0, i)]
	}
	c.chosen++
	return dataplane.Choice{Endpoint: e}, nil
}

// Answered is of dataplane.Chooser.
func (c *Chooser) Answered(*dataplane.Choice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered++
}

// Done is of dataplane.Chooser.
func (c *Chooser) Done(_ *dataplane.Choice, o dataplane.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[o]++
}

// Serves is of dataplane.Chooser.
func (c *Chooser) Serves(choice *dataplane.Choice) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.endpoints, choice.Endpoint)
}

// Calls lists all for which an endpoint was asked, whether there was one or not.
func (c *Chooser) Calls() []dataplane.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Answers counts choices that were answered.
func (c *Chooser) Answers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// Count of the choices of which this came.
func (c *Chooser) Count(o dataplane.Outcome) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[o]
}

// InFlight counts the choices of which nothing has come yet.
func (c *Chooser) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.chosen
	for _, done := range c.done {
		n -= done
	}
	return n
}
