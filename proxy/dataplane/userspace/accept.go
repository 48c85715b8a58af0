package userspace

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
	"skerry.dev/skerry/proxy/dataplane"
)

// accept takes what waits at a listener, and says whether there may be more.
func (l *loop) accept(listener int, at netip.AddrPort) (more bool) {
	for range acceptsMost {
		fd, from, errno := accept(listener)
		if errno != 0 { // nothing more, or one that has gone
			if errno != unix.EAGAIN && noDescriptor(errno) {
				l.shed(listener)
			}
			return false
		}
		l.counts.accepted.Add(1)
		if least := l.plane.least(); l.ending.Load() == 0 && l.counts.open.Load() > least.counts.open.Load()*5/4+unevenMost &&
			least.tell(func(other *loop) { other.take(fd, from, at) }) {
			continue
		}
		l.take(fd, from, at)
	}
	return true
}

// shed refuses a connection for which there is no descriptor, by one that is kept for this:
// it would else wait, and be told of again and again.
func (l *loop) shed(listener int) {
	_ = unix.Close(l.kept)
	if fd, _, errno := accept(listener); errno == 0 {
		l.refuse(fd)
	}
	l.kept = keep()
}

// keep is a descriptor that is of no use but to be given up; -1 where there is none.
func keep() int {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// unevenMost is how many connections, and a quarter, a loop may have above that which has
// least: the kernel deals them out by a hash, and few are dealt unevenly.
const unevenMost = 1

// least is the loop with the fewest connections.
func (p *Plane) least() *loop {
	least := p.loops[0]
	for _, l := range p.loops[1:] {
		if l.counts.open.Load() < least.counts.open.Load() {
			least = l
		}
	}
	return least
}

// take begins a connection.
func (l *loop) take(fd int, client, at netip.AddrPort) {
	local := at
	if at.Addr().IsUnspecified() {
		var err error
		if local, err = socket.LocalOf(fd); err != nil {
			l.refuse(fd)
			return
		}
	}
	target, err := l.plane.config.Target(fd, local)
	if err != nil {
		l.refuse(fd)
		return
	}
	c := &conn{loop: l}
	c.client = side{fd: fd, conn: c, to: &c.server, up: true, writable: true}
	c.server = side{fd: -1, conn: c, to: &c.client}
	c.choice.Call = dataplane.Call{Target: target, Client: client}
	if err := l.add(&c.client, eventsLeaving); err != nil {
		l.refuse(fd)
		return
	}
	l.counts.open.Add(1)
	c.callNext()
}

func (l *loop) refuse(fd int) {
	l.counts.refused.Add(1)
	lingerNot(fd)
	release(fd)
}
