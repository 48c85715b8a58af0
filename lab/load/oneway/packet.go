package oneway

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A packet's payload, big endian; the rest up to its size is zero.
//
//	0  magic     "SKRY"
//	4  version   uint32, 1
//	8  sequence  uint64, from 0
//	16 sent      uint64, CLOCK_REALTIME in ns just before the send
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

// put writes the header into b, which has at least headerLen bytes.
func put(b []byte, sequence, sentNs int64) {
	copy(b, magic)
	binary.BigEndian.PutUint32(b[4:], version)
	binary.BigEndian.PutUint64(b[8:], uint64(sequence))
	binary.BigEndian.PutUint64(b[16:], uint64(sentNs))
}

// parse reads the header of a payload; both numbers are 0 or more.
func parse(b []byte) (sequence, sentNs int64, err error) {
	if len(b) < headerLen || string(b[:4]) != magic || binary.BigEndian.Uint32(b[4:]) != version {
		return 0, 0, errForeign
	}
	sequence = int64(binary.BigEndian.Uint64(b[8:]))
	sentNs = int64(binary.BigEndian.Uint64(b[16:]))
	if sequence < 0 || sentNs < 0 {
		return 0, 0, fmt.Errorf("%w: sequence %d sent at %d", errForeign, sequence, sentNs)
	}
	return sequence, sentNs, nil
}
