package load

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Error classes, as rows hold them: few and short, so that a report can count
// them. A dial's are prefixed with "dial ".
const (
	classTimeout     = "timeout"
	classRefused     = "refused"
	classReset       = "reset"
	classUnreachable = "unreachable"
	classClosed      = "closed"
	classShortHead   = "short header"
	classShortBody   = "short body"
	classLongBody    = "long body"
	classWrongBody   = "wrong body"
	classMalformed   = "malformed answer"
	classTrailing    = "bytes after answer"
	// classStream is a stream of HTTP/2 that the peer gave up.
	classStream = "stream reset"
	// classDenied is what a broker says no to: a connection, a subscription, or all
	// that was agreed before.
	classDenied = "refused by broker"
	// classMissed is a request of an open loop that was never begun.
	classMissed = "missed"
	// The next two are this machine's own limits, not the system's.
	classPorts = "out of ports"
	classFiles = "out of files"
	classOther = "error"
)

func statusClass(status int) string { return "status " + strconv.Itoa(status) }

// class names the kind of an error of a dial or an exchange.
func class(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{os.ErrDeadlineExceeded, classTimeout},
		{syscall.ETIMEDOUT, classTimeout},
		{syscall.ECONNREFUSED, classRefused},
		{syscall.ECONNRESET, classReset},
		{syscall.EPIPE, classReset},
		{syscall.EHOSTUNREACH, classUnreachable},
		{syscall.ENETUNREACH, classUnreachable},
		{syscall.EADDRNOTAVAIL, classPorts},
		{syscall.EMFILE, classFiles},
		{syscall.ENFILE, classFiles},
		{errNoAnswer, classClosed},
		{errShortHead, classShortHead},
		{errShortBody, classShortBody},
		{errTooLong, classLongBody},
		{errTrailing, classTrailing},
		{errMalformed, classMalformed},
		{errRefused, classStream},
		{errDenied, classDenied},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	var t interface{ Timeout() bool }
	if errors.As(err, &t) && t.Timeout() {
		return classTimeout
	}
	return classOther
}
