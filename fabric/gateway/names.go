package gateway

import (
	"context"
	"fmt"

	"skerry.dev/skerry/fabric/dns"
)

// answerNames begins to tell who asks by which addresses imports are called.
func (g *Gateway) answerNames(ctx context.Context) error {
	if g.config.DNS == "" {
		return nil
	}
	names, err := dns.Listen(g.config.DNS)
	if err != nil {
		return fmt.Errorf("listen for questions of DNS: %w", err)
	}
	g.names = names
	g.running.Go(func() { names.Serve(ctx) })
	return nil
}
