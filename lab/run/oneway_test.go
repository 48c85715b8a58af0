package run

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
)

// A listener waits for packets that come seldom.
func TestListenerWaitsForSlowTalkers(t *testing.T) {
	c := contact{attempt: &attempt{}, cycle: 3 * time.Second}
	if c.idle() <= 2*c.cycle {
		t.Errorf("at a cycle of %s it gives up after %s", c.cycle, c.idle())
	}
	c.Cell.Duration, c.Cell.Scenario.Timeline = quantity.Duration(time.Minute), []experiment.Event{{}}
	if c.idle() <= time.Minute+2*c.cycle {
		t.Errorf("where a timeline may keep packets from it for a minute it gives up after %s", c.idle())
	}
}

// What cannot listen is not ready, whatever it says.
func TestNotice(t *testing.T) {
	for said, want := range map[string]bool{
		"listener: bind: address already in use\n": false,
		"ready 0.0.0.0:8080\n":                     true,
		"warned\nready 0.0.0.0:8080\n":             true,
	} {
		n := notice{ready: make(chan struct{})}
		for i := range said { // however it is cut
			if _, err := n.Write([]byte(said[i : i+1])); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-n.ready:
			if !want {
				t.Errorf("%q is taken for ready", said)
			}
		default:
			if want {
				t.Errorf("%q is not taken for ready", said)
			}
		}
	}
}
