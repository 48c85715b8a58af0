package transport

import (
	"errors"
	"io"
	"sync"
)

// Half is a connection whose directions end one by one.
type Half interface {
	io.ReadWriter
	CloseWrite() error
	// Abort ends both directions so that the other end knows that something broke.
	Abort()
	Close() error
}

// Relay passes bytes between this side's socket and the peer's until both have ended, and
// closes them. An end of one direction is passed on as such; an error, which is returned,
// aborts both.
func Relay(socket, peer Half, t *Traffic) error {
	var once sync.Once
	var broken error
	fail := func(err error) {
		once.Do(func() {
			broken = err
			socket.Abort()
			peer.Abort()
		})
	}
	var both sync.WaitGroup
	pass := func(to, from Half, add func(int)) {
		both.Go(func() {
			_, err := io.Copy(counted{to, add}, from)
			if err == nil {
				err = to.CloseWrite()
			}
			if err != nil {
				fail(err)
			}
		})
	}
	pass(peer, socket, t.ToPeer)
	pass(socket, peer, t.ToSocket)
	both.Wait()
	once.Do(func() { broken = errors.Join(socket.Close(), peer.Close()) })
	return broken
}
