// Package tick has a ticker of the kernel's, for programs that sleep between packets. Of one of
// package time Go's monitor wakes with each tick, as it does of a system call
// (docs/adr/0052-calls-untold.md), and looks many times in a ms whether all sleep again; of
// this one a goroutine waits by Go's poller, as of a socket. Start at New.
package tick

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

// Ticker ticks by CLOCK_MONOTONIC, which no one sets, until it is closed.
type Ticker struct {
	// C has the ticks. One that comes before the last was taken is lost.
	C    <-chan struct{}
	file *os.File // timerfd(2)
	done chan struct{}
}

// New ticks ever so often, which has to be more than 0, for the first time after that long.
func New(every time.Duration) (*Ticker, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd") //nolint:gosec // a descriptor
	period := unix.NsecToTimespec(int64(every))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: period, Value: period}, nil); err != nil {
		return nil, errors.Join(os.NewSyscallError("timerfd_settime", err), file.Close())
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	c := make(chan struct{}, 1)
	t := &Ticker{C: c, file: file, done: make(chan struct{})}
	go t.run(raw, c)
	return t, nil
}

// run passes ticks on until the timer is closed.
func (t *Ticker) run(raw syscall.RawConn, c chan<- struct{}) {
	defer close(t.done)
	var times [8]byte // how often it has ticked
	ticked := func(fd uintptr) bool {
		_, errno := socket.Receive(int(fd), times[:])
		return errno == 0
	}
	for raw.Read(ticked) == nil {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Close has it tick no more.
func (t *Ticker) Close() error {
	err := t.file.Close()
	<-t.done
	return err
}
