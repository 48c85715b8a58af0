package workload

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sayMost is how long a client may take to say something to who is broken.
const sayMost = 10 * time.Second

// Break takes every connection on l and resets it as soon as the client says something: a
// service that fails at once, which who looks whether it listens takes to be well. It
// returns as Serve does.
func Break(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	release := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer release()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			open.Go(func() { breakOff(nc) })
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ECONNABORTED):
		default:
			return errors.Join(err, l.Close())
		}
	}
}

func breakOff(nc net.Conn) {
	_ = nc.SetReadDeadline(time.Now().Add(sayMost))
	_, _ = nc.Read(make([]byte, 1))
	_ = nc.(*net.TCPConn).SetLinger(0)
	_ = nc.Close()
}
