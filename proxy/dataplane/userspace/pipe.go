package userspace

import "golang.org/x/sys/unix"

const (
	// pipeSize is what a pipe is asked to hold; without privileges the kernel may refuse
	// (fs.pipe-max-size), and it holds 64 KiB.
	pipeSize = 1 << 20
	// sparesMost bounds the pipes and buffers that a loop keeps for the next.
	sparesMost = 16
)

// pipe is where bytes wait between two sockets.
type pipe struct {
	out, in int // descriptors: what goes to in comes from out
	holds   int
}

// takePipe is a spare pipe, or a new one; nil where there are no descriptors.
func (l *loop) takePipe() *pipe {
	if n := len(l.pipes); n > 0 {
		p := l.pipes[n-1]
		l.pipes = l.pipes[:n-1]
		return p
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize)
	return &pipe{out: fds[0], in: fds[1]}
}

// givePipe takes back one that is empty; one that is not is closed.
func (l *loop) givePipe(p *pipe) {
	if p.holds == 0 && len(l.pipes) < sparesMost {
		l.pipes = append(l.pipes, p)
		return
	}
	p.close()
}

func (p *pipe) close() {
	_ = unix.Close(p.out)
	_ = unix.Close(p.in)
}

// buffer is a spare one, empty.
func (l *loop) buffer() []byte {
	if n := len(l.buffers); n > 0 {
		b := l.buffers[n-1]
		l.buffers = l.buffers[:n-1]
		return b[:0]
	}
	return make([]byte, 0, scratchSize)
}

func (l *loop) giveBuffer(b []byte) {
	if len(l.buffers) < sparesMost {
		l.buffers = append(l.buffers, b)
	}
}
