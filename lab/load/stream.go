package load

import (
	"errors"
	"io"
)

// stream speaks raw TCP: it sends its bytes and wants each of them back. It
// reads while it writes, for an echo that is not read stops to read as well.
type stream struct{ request []byte }

func (*stream) begin(*link) error { return nil }

func (t *stream) exchange(l *link, buf []byte) (answer, error) {
	sent, got := 0, 0
	// One byte more than there should be shows one that should not.
	buf = buf[:len(t.request)+1]
	for s := l.socket; got < len(t.request); {
		switch {
		case sent < len(t.request) && s.writable:
			n, err := s.tryWrite(t.request[sent:])
			if err != nil {
				return answer{}, err
			}
			sent += n
		case s.readable:
			n, err := s.tryRead(buf[got:])
			l.stamp(n)
			got += n
			if err != nil {
				return answer{length: got}, streamError(err, got)
			}
		default:
			if err := s.await(); err != nil {
				return answer{length: got}, err
			}
		}
	}
	if got > len(t.request) || sent < len(t.request) {
		return answer{length: got}, errTrailing
	}
	return answer{length: got}, nil
}

func streamError(err error, got int) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case got == 0:
		return errNoAnswer
	}
	return errShortBody
}
