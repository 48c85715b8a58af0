package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// restFor is how long a backend that could not be reached is passed over.
const restFor = 2 * time.Second

// turn says whose it is of the backends of an export. A snapshot's begins anew.
type turn struct {
	mu sync.Mutex
	// next is the backend that is to be tried first.
	next int
	// rests is until when each is passed over.
	rests []time.Time
}

// newTurns makes one for each export.
func newTurns(exports []snapshot.Export) map[transport.Target]*turn {
	turns := map[transport.Target]*turn{}
	for _, e := range exports {
		if turns[e.Target] == nil { // as snapshots find the first
			turns[e.Target] = &turn{rests: make([]time.Time, len(e.Backends))}
		}
	}
	return turns
}

// order is in which order to try backends, of which one is next: those that rest only
// when all others have failed.
func order(next int, rests []time.Time, now time.Time) []int {
	var first, last []int
	for i := range rests {
		n := (next + i) % len(rests)
		if rests[n].After(now) {
			last = append(last, n)
		} else {
			first = append(first, n)
		}
	}
	return append(first, last...)
}

// take is the order for a new connection, with which the turn passes on.
func (t *turn) take(now time.Time) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := order(t.next, t.rests, now)
	if len(all) > 0 {
		t.next = (all[0] + 1) % len(all)
	}
	return all
}

// tried notes whether a backend was reached.
func (t *turn) tried(n int, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rests[n] = time.Time{}
	if err != nil {
		t.rests[n] = now.Add(restFor)
	}
}

// dial calls backends until one accepts.
func (t *turn) dial(ctx context.Context, e *snapshot.Export, client transport.Client) (transport.Conn, error) {
	var failed []error
	all := t.take(time.Now())
	for i, n := range all {
		conn, err := dialOne(ctx, e, n, len(all)-i, client)
		t.tried(n, err, time.Now())
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no backend")
	}
	return nil, errors.Join(failed...)
}

// dialOne calls a backend, within its share of the time that is left for so many.
func dialOne(ctx context.Context, e *snapshot.Export, n, left int, client transport.Client) (transport.Conn, error) {
	if end, has := ctx.Deadline(); has && left > 1 {
		within, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
		ctx = within
	}
	conn, err := socket.Dial(ctx, e.Backends[n])
	if err != nil {
		return nil, err
	}
	if !e.ProxyProtocol {
		return conn, nil
	}
	// The kernel takes as few bytes without waiting for the backend.
	header := proxyproto.HeaderProxyFromAddrs(2, client.TCP(), conn.RemoteAddr())
	if _, err := header.WriteTo(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("tell %s who calls: %w", e.Backends[n], err), conn.Close())
	}
	return conn, nil
}
