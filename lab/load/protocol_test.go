package load

import (
	"context"
	"testing"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
)

// startProtocol serves a workload by a protocol as skerry-agent does.
func startProtocol(t testing.TB, name, protocol string) string {
	t.Helper()
	switch protocol {
	case workload.TCP:
		l, err := workload.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serving(t, func(ctx context.Context) error { return workload.ServeStream(ctx, l) })
		return l.Addr().String()
	case workload.UDP:
		p, err := workload.ListenPacket(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serving(t, func(ctx context.Context) error { return workload.ServePackets(ctx, p) })
		return p.LocalAddr().String()
	}
	return start(t, name)
}

// serving runs a server until the test ends.
func serving(t testing.TB, serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestEveryProtocolIsAnswered(t *testing.T) {
	for _, c := range []struct {
		protocol string
		sizes    []quantity.Size
		status   int32
	}{
		{workload.HTTP2, []quantity.Size{0, 60, 16384, 65535, 100e3, 5e6}, 200},
		{workload.TCP, []quantity.Size{1, 60, 100e3, 20e6}, 0},
		{workload.UDP, []quantity.Size{1, 23, 24, 1472, 65507}, 0},
	} {
		target := startProtocol(t, workload.PayloadEcho, c.protocol)
		for _, size := range c.sizes {
			for _, connection := range []string{Kept, New} {
				rows := run(t, Spec{
					Target: target, Workload: workload.PayloadEcho, Protocol: c.protocol, Size: size,
					Threads: 2, Iterations: 3, Connection: connection,
				})
				ordered(t, rows)
				for i, r := range rows {
					if r.Error != "" || r.Status != c.status {
						t.Errorf("%s of %s, %s: row %d: %+v", c.protocol, size, connection, i, r)
					}
					if want := int32(i%3 + 1); connection == Kept && r.Index != want || connection == New && r.Connection != want {
						t.Errorf("%s, %s: row %d is request %d of connection %d", c.protocol, connection, i, r.Index, r.Connection)
					}
				}
				if len(rows) != 6 {
					t.Errorf("%s of %s, %s: %d rows, want 6", c.protocol, size, connection, len(rows))
				}
			}
		}
	}
}
