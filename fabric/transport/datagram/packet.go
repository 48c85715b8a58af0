package datagram

import (
	"encoding/binary"
	"fmt"

	"github.com/quic-go/quic-go/quicvarint"

	"skerry.dev/skerry/fabric/transport"
)

// Contexts say what follows in a packet, as in RFC 9298 section 4.
const (
	contextWhole = 0 // a datagram
	contextPart  = 1 // a part of one that is too long for the path
)

const (
	// partHeaderBytes: number of the datagram (2), of the part (1), how many parts (1).
	partHeaderBytes = 4
	// partsMax is how many parts a datagram may have.
	partsMax = 9
)

// packet is what a QUIC datagram carries.
type packet struct {
	flow uint64
	// parts is how many the datagram has; 0 for one that is whole.
	parts, part uint8
	number      uint16
	payload     []byte
}

// parsePacket reads one. The payload is not copied.
func parsePacket(b []byte) (packet, error) {
	var p packet
	flow, n, err := quicvarint.Parse(b)
	if err != nil {
		return p, fmt.Errorf("a datagram of %d bytes without a flow: %w", len(b), transport.ErrProtocol)
	}
	context, m, err := quicvarint.Parse(b[n:])
	if err != nil || context > contextPart {
		return p, fmt.Errorf("a datagram of no context that there is: %w", transport.ErrProtocol)
	}
	p.flow, p.payload = flow, b[n+m:]
	if context == contextWhole {
		return p, nil
	}
	if len(p.payload) <= partHeaderBytes {
		return p, fmt.Errorf("a part of %d bytes: %w", len(p.payload), transport.ErrProtocol)
	}
	p.number, p.part, p.parts = binary.BigEndian.Uint16(p.payload), p.payload[2], p.payload[3]
	p.payload = p.payload[partHeaderBytes:]
	if p.parts < 2 || p.parts > partsMax || p.part >= p.parts {
		return p, fmt.Errorf("part %d of %d: %w", p.part, p.parts, transport.ErrProtocol)
	}
	return p, nil
}

// appendPacket writes one.
func appendPacket(to []byte, p packet) []byte {
	to = quicvarint.Append(to, p.flow)
	if p.parts == 0 {
		to = quicvarint.Append(to, contextWhole)
		return append(to, p.payload...)
	}
	to = quicvarint.Append(to, contextPart)
	to = binary.BigEndian.AppendUint16(to, p.number)
	to = append(to, p.part, p.parts)
	return append(to, p.payload...)
}

// split makes packets of no more than that many bytes of a datagram that is too long for
// one: none where that takes too many. Parts are of one length, but for the last.
func split(flow uint64, number uint16, datagram []byte, room int) (packets [][]byte) {
	head := quicvarint.Len(flow) + 1 + partHeaderBytes
	if room <= head {
		return nil
	}
	parts := max(2, (len(datagram)+room-head-1)/(room-head))
	if parts > partsMax {
		return nil
	}
	each := (len(datagram) + parts - 1) / parts
	for i := range parts {
		payload := datagram[i*each : min((i+1)*each, len(datagram))]
		p := packet{flow: flow, number: number, part: uint8(i), parts: uint8(parts), payload: payload}
		packets = append(packets, appendPacket(make([]byte, 0, head+len(payload)), p))
	}
	return packets
}
