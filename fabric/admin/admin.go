// Package admin is what an operator asks of a gateway that runs: metrics for Prometheus,
// whether it serves, and its status. Start at Handler for what is answered, at Fetch for
// who asks.
package admin

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/internal/loopback"
)

const statusPath = "/v1/status"

// Handler answers by what these say now.
func Handler(metrics prometheus.Gatherer, phase func() Phase, status func() *Status) http.Handler {
	return loopback.Handler(loopback.Answers{
		Metrics: metrics,
		Phase: func() (string, bool, bool) {
			now := phase()
			return string(now), now == Serving || now == Ready, now == Ready
		},
		Documents: map[string]func(func(string) string) any{statusPath: func(func(string) string) any { return status() }},
	})
}

// Fetch asks the gateway that answers at an address for its status.
func Fetch(ctx context.Context, address string) (*Status, error) {
	s := &Status{}
	if err := loopback.Fetch(ctx, address, statusPath, "gateway", s); err != nil {
		return nil, err
	}
	return s, nil
}
