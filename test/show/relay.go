package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// relay is a system under test that can be slowed by a known amount: it passes
// connections on to a service, and holds each answer back.
type relay struct {
	listen, target string
	// least is how long an answer is held, or share of the round trip that the
	// kernel sees to the client, if that is longer.
	least time.Duration
	share float64
}

// serve relays until ctx ends.
func (r relay) serve(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.listen)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go func() { _ = r.pass(ctx, conn.(*net.TCPConn)) }() // a peer that goes away is no fault of the relay's
	}
}

// pass carries one connection. Requests go on at once; the first bytes of each
// answer wait.
func (r relay) pass(ctx context.Context, client *net.TCPConn) error {
	defer func() { _ = client.Close() }()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.target)
	if err != nil {
		return err
	}
	service := conn.(*net.TCPConn)
	defer func() { _ = service.Close() }()
	asked := make(chan struct{}, 1)
	go func() {
		_ = pump(service, client, func() {
			select {
			case asked <- struct{}{}:
			default:
			}
		})
		_ = service.CloseWrite()
	}()
	// The wait has an OS thread of its own, whose timer has no slack.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	return pump(client, service, func() {
		select {
		case <-asked:
			nap := unix.NsecToTimespec(int64(r.wait(client)))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &nap, nil) // a signal only shortens it
		default:
		}
	})
}

// pump copies from one connection to the other, and calls before ahead of every
// write.
func pump(to io.Writer, from io.Reader, before func()) error {
	buffer := make([]byte, 256<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			before()
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// wait is how long to hold an answer to this client.
func (r relay) wait(client *net.TCPConn) time.Duration {
	if r.least == 0 {
		return 0
	}
	return max(r.least, time.Duration(r.share*float64(roundTrip(client))))
}

// roundTrip is the kernel's smoothed round-trip time, 0 where it has none.
func roundTrip(conn *net.TCPConn) time.Duration {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	var rtt time.Duration
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			rtt = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return rtt
}

// relayOf reads a relay's command line: LISTEN TARGET LEAST SHARE.
func relayOf(args []string) (relay, error) {
	const usage = "relay takes LISTEN TARGET LEAST SHARE, for example :8081 10.0.0.1:8080 300us 0.05"
	if len(args) != 4 {
		return relay{}, errors.New(usage)
	}
	r := relay{listen: args[0], target: args[1]}
	var err error
	if r.least, err = time.ParseDuration(args[2]); err != nil {
		return relay{}, fmt.Errorf("%s: %w", usage, err)
	}
	if _, err := fmt.Sscan(args[3], &r.share); err != nil {
		return relay{}, fmt.Errorf("%s: %w", usage, err)
	}
	return r, nil
}
