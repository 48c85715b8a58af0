package run

import (
	"context"
	"time"
)

// Scale is how many pods of the service's cluster took requests from some time on.
type Scale struct {
	// AtNs counts from the beginning of the load.
	AtNs int64 `json:"at_ns"`
	Pods int   `json:"pods"`
}

// scaler writes down the scale of an autoscaled workload; nil where nobody scales.
type scaler struct {
	stop context.CancelFunc
	done chan error
	// scale may be read once done has told.
	scale []Scale
}

// followScale begins with the load.
func (r *runner) followScale(ctx context.Context, a *attempt) *scaler {
	if r.Experiment.Autoscaled(a.Cell) == nil {
		return nil
	}
	name, _ := r.Experiment.Topology.Service.Split()
	ctx, stop := context.WithCancel(ctx)
	s := &scaler{stop: stop, done: make(chan error, 1)}
	began := time.Now()
	go func() {
		s.done <- r.clusters[name].Follow(ctx, serviceName, func(pods int) {
			s.scale = append(s.scale, Scale{AtNs: int64(time.Since(began)), Pods: pods})
		})
	}()
	return s
}

// end tells what was seen while the load ran.
func (s *scaler) end() ([]Scale, error) {
	if s == nil {
		return nil, nil
	}
	s.stop()
	err := <-s.done
	return s.scale, err
}
