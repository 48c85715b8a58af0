package planetest_test

import (
	"testing"

	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

// Endpoints come in turn, are counted until something comes of them, and none comes where
// nobody serves or while it is held.
func TestChooser(t *testing.T) {
	c := planetest.New("10.0.0.1:80", "10.0.0.2:80")
	for _, want := range []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.1:80"} {
		if got, err := c.Choose(dataplane.Call{}); err != nil || got.Endpoint.String() != want {
			t.Errorf("%s, %v, want %s", got.Endpoint, err, want)
		}
	}
	c.Answered(nil)
	c.Done(nil, dataplane.Served)
	if c.InFlight() != 2 || c.Answers() != 1 || c.Count(dataplane.Served) != 1 || len(c.Calls()) != 3 {
		t.Errorf("%d in flight, %d answered, %d served, %d calls", c.InFlight(), c.Answers(), c.Count(dataplane.Served), len(c.Calls()))
	}
	c.Serve()
	if _, err := c.Choose(dataplane.Call{}); err == nil || c.InFlight() != 2 {
		t.Errorf("nobody serves: %v, %d in flight", err, c.InFlight())
	}
	release := c.Hold()
	chosen := make(chan error)
	go func() {
		_, err := c.Choose(dataplane.Call{})
		chosen <- err
	}()
	select {
	case err := <-chosen:
		t.Errorf("it is held, and chosen: %v", err)
	default:
	}
	c.Serve("10.0.0.3:80")
	release()
	if err := <-chosen; err != nil {
		t.Error(err)
	}
}
