package userspace

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poller is an epoll that a goroutine waits for by Go's own poller, and not in a system call:
// docs/adr/0047-userspace-plane.md.
type poller struct {
	epoll int
	file  *os.File        // the same
	ready syscall.RawConn // of file
	// alarm ends a wait. It is set anew only for what comes before it, or when it has rung: so it
	// rings early now and then, and is not moved with each connection.
	alarm time.Time
	rang  bool
	found found
}

// found is what a look has come to, which a wait needs no memory for.
type found struct {
	events []unix.EpollEvent
	count  int
	err    error
	asks   func(uintptr) bool // looks, and says whether that is all
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll: %w", err)
	}
	if err := unix.SetNonblock(epoll, true); err != nil {
		return nil, errors.Join(fmt.Errorf("set up epoll: %w", err), unix.Close(epoll))
	}
	p := &poller{epoll: epoll, file: os.NewFile(uintptr(epoll), "epoll")} //nolint:gosec // a descriptor
	if p.ready, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("set up epoll: %w", err), p.close())
	}
	p.found.asks = func(uintptr) bool {
		f := &p.found
		f.count, f.err = p.look(f.events)
		return f.count > 0 || f.err != nil
	}
	return p, nil
}

func (p *poller) close() error { return p.file.Close() }

// watch has events of a descriptor be told.
func (p *poller) watch(fd int, events uint32) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, events)
}

// change has other events of a descriptor be told, at once those that it has already.
func (p *poller) change(fd int, events uint32) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, events)
}

func (p *poller) control(how, fd int, events uint32) error {
	if err := unix.EpollCtl(p.epoll, how, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil { //nolint:gosec // a descriptor
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// look is what has happened by now.
func (p *poller) look(events []unix.EpollEvent) (int, error) {
	switch n, errno := poll(p.epoll, events); errno {
	case 0:
		return n, nil
	case unix.EINTR:
		return 0, nil
	default:
		return 0, fmt.Errorf("wait: %w", errno)
	}
}

// wait is what has happened, once something has; at a time, where it is not zero, or now and
// then earlier, it may be nothing.
func (p *poller) wait(events []unix.EpollEvent, until time.Time) (int, error) {
	if err := p.setAlarm(until); err != nil {
		return 0, err
	}
	f := &p.found
	f.events, f.count, f.err = events, 0, nil
	waited := p.ready.Read(f.asks)
	if p.rang = errors.Is(waited, os.ErrDeadlineExceeded); p.rang {
		return f.count, f.err
	}
	return f.count, errors.Join(f.err, waited)
}

func (p *poller) setAlarm(at time.Time) error {
	if later := at.IsZero() || !p.alarm.IsZero() && !at.Before(p.alarm); later && !p.rang {
		return nil
	}
	p.alarm, p.rang = at, false
	return p.file.SetReadDeadline(at)
}
