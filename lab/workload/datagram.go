package workload

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The head of a datagram that is to carry times, big endian. A client leaves the
// times 0; the echo fills them in and leaves the rest of the datagram as it is.
//
//	0  magic     "SKRE"
//	4  sequence  uint32, the client's
//	8  arrived   uint64, CLOCK_REALTIME in ns when the kernel got it
//	16 answered  uint64, CLOCK_REALTIME in ns just before it was sent back
const (
	datagramMagic = "SKRE"
	// DatagramHeader is the length of the head in bytes: a shorter datagram is
	// echoed as it came.
	DatagramHeader = 24
	// DatagramMax is the longest payload of UDP over IPv4, in bytes. One above
	// the path's MTU less 28 travels in fragments.
	DatagramMax = 65507
)

// ErrForeign is returned for a datagram that has no head of this package.
var ErrForeign = errors.New("not a datagram of the echo")

// Datagram is what the head says.
type Datagram struct {
	Sequence uint32
	// ArrivedNs and AnsweredNs are of CLOCK_REALTIME at the service, 0 before.
	ArrivedNs, AnsweredNs int64
}

// PutDatagram writes the head into b, which has at least DatagramHeader bytes.
func PutDatagram(b []byte, d Datagram) {
	copy(b, datagramMagic)
	binary.BigEndian.PutUint32(b[4:], d.Sequence)
	binary.BigEndian.PutUint64(b[8:], uint64(d.ArrivedNs))
	binary.BigEndian.PutUint64(b[16:], uint64(d.AnsweredNs))
}

// ReadDatagram reads the head; times are 0 or more. The error is ErrForeign.
func ReadDatagram(b []byte) (Datagram, error) {
	if len(b) < DatagramHeader || string(b[:4]) != datagramMagic {
		return Datagram{}, ErrForeign
	}
	d := Datagram{
		Sequence:   binary.BigEndian.Uint32(b[4:]),
		ArrivedNs:  int64(binary.BigEndian.Uint64(b[8:])),
		AnsweredNs: int64(binary.BigEndian.Uint64(b[16:])),
	}
	if d.ArrivedNs < 0 || d.AnsweredNs < 0 {
		return Datagram{}, ErrForeign
	}
	return d, nil
}

// ArrivalNs reads when a datagram arrived, CLOCK_REALTIME ns, out of the control
// data that came with it on a socket with SO_TIMESTAMPNS; 0 where it is absent.
func ArrivalNs(control []byte) int64 {
	for len(control) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= 16 {
			seconds := int64(binary.NativeEndian.Uint64(data))
			return seconds*int64(time.Second) + int64(binary.NativeEndian.Uint64(data[8:]))
		}
		control = rest
	}
	return 0
}
