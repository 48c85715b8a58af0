package balance

import (
	"fmt"
	"slices"
	"time"
)

// The names of policies.
const (
	RoundRobin = "round-robin" // each endpoint in turn, as kube-proxy's userspace mode
	Random     = "random"      // any, as kube-proxy's iptables mode
	EWMA       = "ewma"        // the better of two by peak latency and what is in flight
	RAP        = "rap"         // the Resource Adaptive Proxy, as published
	Cost       = "cost"        // the least expected time, local where it is a near thing
)

// Policies lists the names.
func Policies() []string { return []string{RoundRobin, Random, EWMA, RAP, Cost} }

// Options are a policy with its parameters. Those that are 0 have their defaults.
type Options struct {
	Policy string

	// RoundTrips is what a request costs on the wire: 2 on a new connection, 1 where
	// clients keep theirs. Default 2.
	RoundTrips int
	// Eject leaves out endpoints that fail again and again. cost always does.
	Eject bool

	// Cycle is how often RAP looks for its best node. Default 1 s.
	Cycle time.Duration
	// MaxCPU and MaxRAM are RAP's thresholds, as shares of the limit. Default 0.9.
	MaxCPU, MaxRAM float64
	// MaxRTT is the round trip of which RAP takes the score of latency as 0. Default 100 ms.
	MaxRTT time.Duration
	// Weights are those of CPU, RAM and latency in RAP's score. Default 1/3 each.
	Weights [3]float64

	// Gamma is how much a queue weighs in cost where others idle. Default 6.
	Gamma float64
	// QueueAge, RTTAge and UsageAge are how old a report may be to count.
	// Defaults: 1 s, 10 s, 60 s.
	QueueAge, RTTAge, UsageAge time.Duration
}

// withDefaults fills in what is not said.
func (o Options) withDefaults() Options {
	o.RoundTrips = or(o.RoundTrips, 2)
	o.MaxCPU, o.MaxRAM = or(o.MaxCPU, 0.9), or(o.MaxRAM, 0.9)
	o.MaxRTT = or(o.MaxRTT, 100*time.Millisecond)
	if o.Weights == [3]float64{} {
		o.Weights = [3]float64{1. / 3, 1. / 3, 1. / 3}
	}
	o.Cycle = or(o.Cycle, time.Second)
	o.Gamma = or(o.Gamma, 6)
	o.QueueAge, o.RTTAge, o.UsageAge = or(o.QueueAge, time.Second), or(o.RTTAge, 10*time.Second), or(o.UsageAge, time.Minute)
	o.Eject = o.Eject || o.Policy == Cost
	return o
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Check says whether there is such a policy.
func (o Options) Check() error {
	_, err := o.policy()
	return err
}

// policy is the one of the name.
func (o Options) policy() (policy, error) {
	switch o.Policy {
	case RoundRobin:
		return &roundRobin{}, nil
	case Random:
		return random{}, nil
	case EWMA:
		return ewma{}, nil
	case RAP:
		return &rap{Options: o}, nil
	case Cost:
		return &cost{Options: o}, nil
	default:
		return nil, fmt.Errorf("policy %q is none of %q", o.Policy, slices.Sorted(slices.Values(Policies())))
	}
}
