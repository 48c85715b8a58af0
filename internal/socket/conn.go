// Package socket has connections of TCP whose reads and writes Go's scheduler is not told
// of, and datagrams that wake nobody. Of those connections none blocks: where nothing is
// there to be read, or no room to write, a goroutine waits by Go's poller as ever. Told of a
// system call, the scheduler wakes its monitor where that sleeps, a thread which then looks
// many times in a ms whether the call has ended. In a program that waits between packets it
// sleeps before each of them, so that every packet pays for it
// (docs/adr/0052-calls-untold.md). Start at Of.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is a connection of TCP. All but Read and Write is that of package net.
type Conn struct {
	*net.TCPConn
	in, out direction
}

// direction is a call that may be made again and again until the socket takes part. It is
// made once for each connection, so that no call of it allocates.
type direction struct {
	mu    sync.Mutex // one call at a time, as package net has it
	raw   syscall.RawConn
	b     []byte
	n     int
	errno syscall.Errno
	try   func(fd uintptr) (done bool)
}

// Dial calls HOST:PORT.
func Dial(ctx context.Context, address string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return Of(conn)
}

// Of is a connection of TCP with these reads and writes. One of another kind is closed.
func Of(conn net.Conn) (*Conn, error) {
	plain := Plain(conn)
	if plain == nil {
		return nil, errors.Join(fmt.Errorf("%s: not TCP", conn.RemoteAddr()), conn.Close())
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &Conn{TCPConn: plain}
	c.in.raw, c.in.try = raw, c.in.receive
	c.out.raw, c.out.try = raw, c.out.send
	return c, nil
}

// Plain is the connection as package net has it; nil where it is none of TCP.
func Plain(conn net.Conn) *net.TCPConn {
	switch c := conn.(type) {
	case *Conn:
		return c.TCPConn
	case *net.TCPConn:
		return c
	}
	return nil
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, errno, err := c.in.call(b, c.in.raw.Read)
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, c.failed("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, errno, err := c.out.call(b, c.out.raw.Write)
	if err == nil && errno != 0 {
		err = c.failed("write", errno)
	}
	return n, err
}

// call makes the call of a direction on some bytes until it is done.
func (d *direction) call(b []byte, until func(func(fd uintptr) bool) error) (n int, errno syscall.Errno, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b, d.n, d.errno = b, 0, 0
	err = until(d.try)
	d.b = nil
	return d.n, d.errno, err
}

func (d *direction) receive(fd uintptr) (done bool) {
	for {
		n, errno := Receive(int(fd), d.b)
		switch errno {
		case 0:
			d.n = n
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			d.errno = errno
			return true
		}
	}
}

func (d *direction) send(fd uintptr) (done bool) {
	for d.n < len(d.b) {
		n, errno := Send(int(fd), d.b[d.n:])
		switch errno {
		case 0:
			d.n += n
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			d.errno = errno
			return true
		}
	}
	return true
}

// failed is an error as package net has it.
func (c *Conn) failed(call string, errno syscall.Errno) error {
	return &net.OpError{Op: call, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
}
