package oneway

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A packet's payload, big endian; the rest up to its size is zero.
//
//	0  magic     "SKRY"
//	4  flow      uint16, from 0
//	6  version   uint16, 1
//	8  sequence  uint64, from 0
//	16 sent      uint64, CLOCK_REALTIME in ns: when it is to leave, or just before the send
const (
	magic     = "SKRY"
	version   = 1
	headerLen = 24
)

// Bounds of a packet's payload in bytes: the header, and UDP over IPv4.
const (
	SizeMin = headerLen
	SizeMax = 65507
)

var errForeign = errors.New("not a timed packet")

// header of a packet.
type header struct {
	flow             int
	sequence, sentNs int64
}

// put writes it into b, which has at least headerLen bytes.
func (h header) put(b []byte) {
	copy(b, magic)
	binary.BigEndian.PutUint16(b[4:], uint16(h.flow)) //nolint:gosec // of 0 to flowsMax
	binary.BigEndian.PutUint16(b[6:], version)
	binary.BigEndian.PutUint64(b[8:], uint64(h.sequence))
	binary.BigEndian.PutUint64(b[16:], uint64(h.sentNs))
}

// parse reads the header of a payload; its numbers are 0 or more.
func parse(b []byte) (header, error) {
	if len(b) < headerLen || string(b[:4]) != magic || binary.BigEndian.Uint16(b[6:]) != version {
		return header{}, errForeign
	}
	h := header{
		flow:     int(binary.BigEndian.Uint16(b[4:])),
		sequence: int64(binary.BigEndian.Uint64(b[8:])), sentNs: int64(binary.BigEndian.Uint64(b[16:])),
	}
	if h.sequence < 0 || h.sentNs < 0 {
		return header{}, fmt.Errorf("%w: sequence %d sent at %d", errForeign, h.sequence, h.sentNs)
	}
	return h, nil
}
