package datagram

import (
	"fmt"
	"testing"
	"time"
)

// Flows take turns, and where a flow has too much its oldest gives way.
func TestQueue(t *testing.T) {
	q := newQueue()
	bulk, small := &lane{flow: 1}, &lane{flow: 2}
	const each = 1000
	fits := laneBytes / (each + waitingBytes)
	dropped := 0
	for i := range fits + 10 {
		dropped += q.add(bulk, fmt.Appendf(nil, "%0*d", each, i))
	}
	if dropped != 10 {
		t.Errorf("%d gave way, want 10", dropped)
	}
	q.add(small, []byte("a"))
	q.add(small, []byte("b"))
	got := ""
	for range 4 {
		l, datagram := q.next()
		got += fmt.Sprintf("%d:%s ", l.flow, datagram[max(0, len(datagram)-2):])
	}
	if want := "1:10 2:a 1:11 2:b "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range fits - 2 {
		q.next()
	}
	if l, _ := q.next(); l != nil || q.bytes != 0 || bulk.bytes != 0 {
		t.Errorf("left: %v, %d bytes", l, q.bytes)
	}
}

// Where all flows together have too much, the one that has the most gives way, and one
// that has lost all it had takes its turn as before.
func TestQueueFull(t *testing.T) {
	q := newQueue()
	small := &lane{flow: 99}
	q.add(small, []byte("small"))
	lanes := make([]lane, 2*queueBytes/laneBytes)
	for range laneBytes / 1000 {
		for i := range lanes {
			q.add(&lanes[i], make([]byte, 1000-waitingBytes))
		}
	}
	if q.bytes > queueBytes {
		t.Errorf("%d bytes wait, the most is %d", q.bytes, queueBytes)
	}
	if l, datagram := q.next(); l != small || string(datagram) != "small" {
		t.Errorf("got %d bytes of flow %d: a small one gives way to large ones", len(datagram), l.flow)
	}
	least, most := lanes[0].bytes, lanes[0].bytes
	for i := range lanes {
		least, most = min(least, lanes[i].bytes), max(most, lanes[i].bytes)
	}
	if most-least > 2000 {
		t.Errorf("flows have %d to %d bytes", least, most)
	}
}

// What comes before its flow waits for a moment, in order and in bounds.
func TestEarly(t *testing.T) {
	var e early
	now := time.Now()
	e.add(1, []byte("a"), now)
	e.add(2, []byte("b"), now)
	e.add(1, []byte("c"), now)
	if got, dropped := e.take(1, now); fmt.Sprintf("%s", got) != "[a c]" || dropped != 0 {
		t.Errorf("got %s, %d dropped", got, dropped)
	}
	if got, dropped := e.take(2, now.Add(2*earlyLasts)); len(got) != 0 || dropped != 1 || e.bytes != 0 {
		t.Errorf("got %s, %d dropped", got, dropped)
	}
	dropped := 0
	for range 2 * earlyBytes / 1000 {
		dropped += e.add(3, make([]byte, 1000-waitingBytes), now)
	}
	if got := len(e.waiting) + dropped; e.bytes > earlyBytes || got != 2*earlyBytes/1000 {
		t.Errorf("%d bytes wait; %d in all", e.bytes, got)
	}
}
