package socket

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepAliveEvery is how long a connection may say nothing until its peer is asked whether
// it is there, and how long it is waited for each of the kernel's nine questions: what
// package net has too.
const keepAliveEvery = 15 * time.Second

// Listen takes connections at HOST:PORT, as Conn. Peers are asked whether they are there,
// as package net has it, but by options of the listener, which the kernel hands down: of a
// program that takes thousands a second each system call shows. They are TCP, not multipath
// TCP.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	c := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error {
			return errors.Join(
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
				unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAliveEvery/time.Second)),
				unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAliveEvery/time.Second)),
			)
		})
	}}
	c.SetMultipathTCP(false)
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return listener{l}, nil
}

// listener gives connections of this package.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Of(conn)
}

func control(raw syscall.RawConn, set func(fd int) error) (err error) {
	if failed := raw.Control(func(fd uintptr) { err = set(int(fd)) }); failed != nil {
		return failed
	}
	return err
}
