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

// Relay passes bytes between two connections until both have ended, and closes them. An
// end of one direction is passed on as such; an error, which is returned, aborts both.
func Relay(a, b Half) error {
	var once sync.Once
	var broken error
	fail := func(err error) {
		once.Do(func() {
			broken = err
			a.Abort()
			b.Abort()
		})
	}
	var both sync.WaitGroup
	for _, way := range [][2]Half{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(way[1], way[0])
			if err == nil {
				err = way[1].CloseWrite()
			}
			if err != nil {
				fail(err)
			}
		})
	}
	both.Wait()
	once.Do(func() { broken = errors.Join(a.Close(), b.Close()) })
	return broken
}
