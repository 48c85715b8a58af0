package balance

import "time"

// An Explanation says what the next choice of a Service rests on.
type Explanation struct {
	Policy    string                `json:"policy"`
	Best      string                `json:"best,omitempty"`  // RAP: the node that takes what home cannot
	Crowd     float64               `json:"crowd,omitempty"` // cost: how many proxies are taken to do as this one
	Endpoints []EndpointExplanation `json:"endpoints"`
}

// An EndpointExplanation is an endpoint as its balancer sees it. Times are in ns.
type EndpointExplanation struct {
	ID       string `json:"id"`
	Node     string `json:"node"`
	Local    bool   `json:"local"`
	InFlight int    `json:"inFlight"` // of this proxy
	Chosen   uint64 `json:"chosen"`   // times, since it is known

	// Latency is a moving average of what was served: of the policy ewma with its peaks.
	Latency time.Duration `json:"latencyNs"`
	Standing
	Knowledge
	// Cost is of the policy cost, nil for others.
	Cost *CostTerms `json:"cost,omitempty"`
}

// A Standing is how an endpoint has done.
type Standing struct {
	Failures  int           `json:"failures"`  // in a row
	Ejections uint64        `json:"ejections"` // since it is known
	Out       time.Duration `json:"outNs"`     // for how long it is left out yet
	Worth     float64       `json:"worth"`     // less than 1 after it came back
}

// Knowledge is what is known of an endpoint's node, with ages; nil is not known, or too
// old to count.
type Knowledge struct {
	Usage    *Usage         `json:"usage,omitempty"`
	UsageAge time.Duration  `json:"usageAgeNs,omitempty"`
	Queue    *Queue         `json:"queue,omitempty"`
	QueueAge time.Duration  `json:"queueAgeNs,omitempty"`
	RTT      *time.Duration `json:"rttNs,omitempty"`
	RTTAge   time.Duration  `json:"rttAgeNs,omitempty"`
}

// CostTerms are what the next request costs: Wire + Service × (1 + Weight × Waiting), divided by
// the endpoint's worth. With a Weight of 1 it is what it is expected to take.
type CostTerms struct {
	Total   time.Duration `json:"totalNs"`
	Wire    time.Duration `json:"wireNs"`
	Service time.Duration `json:"serviceNs"`
	Waiting float64       `json:"waiting"` // service times that it would wait
	Weight  float64       `json:"weight"`  // as home and what is not are compared
}

// Explain says what the next choice rests on.
func (b *Balancer) Explain(now time.Duration) Explanation {
	x := Explanation{Policy: b.options.Policy}
	switch p := b.policy.(type) {
	case *rap:
		if p.best != nil {
			x.Best = p.best.Name
		}
	case *cost:
		x.Crowd = p.crowd
	}
	for _, e := range b.all {
		x.Endpoints = append(x.Endpoints, b.explain(e, now))
	}
	return x
}

func (b *Balancer) explain(e *endpoint, now time.Duration) EndpointExplanation {
	n, o := e.at, &b.options
	x := EndpointExplanation{
		ID: e.ID, Node: e.Node, Local: n.Local, InFlight: e.inFlight, Chosen: e.chosen, Latency: time.Duration(n.seen.latency),
		Standing: Standing{e.standing.failures, e.standing.times, max(0, e.standing.until-now), e.standing.share(now)},
	}
	x.Usage, x.UsageAge = n.Usage.within(now, o.UsageAge)
	x.Queue, x.QueueAge = n.Queue.within(now, o.QueueAge)
	if x.Queue != nil && x.Queue.Said > 0 {
		x.QueueAge = now - x.Queue.Said
	}
	x.RTT, x.RTTAge = n.RTT.within(now, o.RTTAge)
	switch p := b.policy.(type) {
	case ewma:
		x.Latency = time.Duration(e.latency.mean)
	case *cost:
		x.Cost = p.explain(e, &b.field, now)
	}
	return x
}

// within is the value and its age, where it is known and no older than a limit.
func (m Measured[T]) within(now, limit time.Duration) (*T, time.Duration) {
	if !m.fresh(now, limit) {
		return nil, 0
	}
	return &m.Value, now - m.At
}
