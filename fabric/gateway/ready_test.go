package gateway_test

import (
	"testing"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// A gateway that begins before its peer's is ready when the way is prepared; one whose peer
// is not there does not wait for ever.
func TestReadyWhenPrepared(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, never := port(t), port(t)
	importer := observe(t, gateway.Config{Identity: folders["c2"]}, imports(port(t), peers, never))
	way := func(s *admin.Status, address string) (state transport.State) {
		for _, g := range s.Peers[0].Gateways {
			if g.Address == address {
				state = g.State
			}
		}
		return state
	}
	var now *admin.Status
	conntest.Await(t, "a dial that fails", func() bool {
		now = importer.status(t)
		return way(now, peers) == transport.Down
	})
	if now.Phase == admin.Ready {
		t.Error("it is ready as soon as a dial has failed")
	}
	run(t, gateway.Config{Identity: folders["c1"], Listen: peers}, exports(echo(t)), nil)
	conntest.Await(t, "a gateway that is ready", func() bool {
		now = importer.status(t)
		return now.Phase == admin.Ready
	})
	if way(now, peers) != transport.Up || way(now, never) != transport.Down {
		t.Errorf("ready with %+v", now.Peers)
	}
}
