package snapshot_test

import (
	"testing"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

func TestFind(t *testing.T) {
	web := transport.Target{Namespace: "default", Name: "web", Port: 80, Protocol: transport.TCP}
	s := &snapshot.Snapshot{Peers: []snapshot.Peer{{Name: "c1"}, {Name: "c2"}}, Exports: []snapshot.Export{{Target: web}}}
	if p := s.Peer("c2"); p == nil || p.Name != "c2" {
		t.Errorf("got %v", p)
	}
	if e := s.Export(web); e == nil || e.Target != web {
		t.Errorf("got %v", e)
	}
	other := web
	other.Protocol = transport.UDP
	if s.Peer("c3") != nil || s.Export(other) != nil {
		t.Error("found what is not there")
	}
}
