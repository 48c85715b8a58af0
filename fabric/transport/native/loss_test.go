package native

import (
	"errors"
	"io"
	"net"
	"testing"

	"skerry.dev/skerry/fabric/transport"
)

// Loss is told when there is some, and else once in a thousand packets.
func TestTells(t *testing.T) {
	var u tells
	for i, c := range []struct {
		more count
		want count
		tell bool
	}{
		{count{999, 0}, count{}, false},
		{count{1, 0}, count{1000, 0}, true},
		{count{10, 0}, count{}, false},
		{count{10, 1}, count{20, 1}, true},
		{count{}, count{}, false},
	} {
		if got, tell := u.add(c.more); got != c.want || tell != c.tell {
			t.Errorf("%d: got %+v, %t", i, got, tell)
		}
	}
}

// What was taken for lost and was there after all makes no loss.
func TestMinus(t *testing.T) {
	if got := (count{20, 3}).minus(count{10, 5}); got != (count{10, 0}) {
		t.Errorf("got %+v", got)
	}
}

// Who calls hears what is lost on the way back; he has nothing to tell of it himself.
func TestLossTold(t *testing.T) {
	for name, c := range map[string]struct {
		payload []byte
		told    count
		want    error
	}{
		"as it is":       {[]byte{0, 0, 1, 0, 0, 0, 0, 2}, count{256, 2}, io.EOF},
		"more than sent": {[]byte{0, 0, 0, 1, 0, 0, 0, 2}, count{}, transport.ErrProtocol},
	} {
		near, far := net.Pipe()
		conn := newConnection(near, newBuffers())
		var told count
		conn.lost = func(n count) { told = n }
		go func() {
			_, _ = far.Write(frame(kindLoss, 0, c.payload...))
			_ = far.Close()
		}()
		if err := conn.serve(); !errors.Is(err, c.want) || told != c.told {
			t.Errorf("%s: %v, told %+v", name, err, told)
		}
	}
	if err := served(t, frame(kindLoss, 0, 0, 0, 1, 0, 0, 0, 0, 2), backend(refusing)); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("told by who calls: %v", err)
	}
}

// A path that loses packets on the way back alone is one that loses packets.
func TestLossyBack(t *testing.T) {
	var s sight
	s.add(count{1000, 0})
	if s.lossy() {
		t.Error("lossy without a loss")
	}
	s.told = count{1000, 10}
	s.add(count{1000, 0})
	if !s.lossy() || s.loss() != 0.01 || s.told != (count{}) {
		t.Errorf("lossy %t, %g, told %+v", s.lossy(), s.loss(), s.told)
	}
}

// Much is lost where one of twenty is, and more than by chance.
func TestFloods(t *testing.T) {
	for c, want := range map[count]bool{
		{}: false, {packets: 5, lost: 5}: false, {packets: 199, lost: 10}: true, {packets: 200, lost: 10}: false,
	} {
		if c.floods() != want {
			t.Errorf("%+v: %t", c, !want)
		}
	}
}
