package ledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"syscall"

	"skerry.dev/skerry/fabric/identity"
)

// ErrBusy says that too many handshakes are under way.
var ErrBusy = errors.New("too many handshakes at once")

// HandshakeFailed counts a connection to this gateway that was refused.
func (l *Ledger) HandshakeFailed(err error) {
	l.counters.handshakes.WithLabelValues(class(err)).Inc()
}

// class is the kind of an error of a handshake, of a bounded number.
func class(err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isPlain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(err, identity.ErrRevoked):
		return "revoked"
	case isInvalid && invalid.Reason == x509.Expired:
		return "expired"
	case errors.Is(err, identity.ErrUntrusted), errors.Is(err, identity.ErrName):
		return "untrusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "closed"
	case isPlain:
		return "not-tls"
	}
	return "tls" // its version, its protocols, no certificate
}
