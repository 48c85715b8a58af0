package userspace

import (
	"encoding/binary"
	"errors"
)

// The nfnetlink_queue protocol, as linux/netfilter/nfnetlink_queue.h has it:
// the part that an emulator needs. Everything here is pure.
const (
	subsysQueue = 3 << 8

	msgPacket  = subsysQueue + 0
	msgVerdict = subsysQueue + 1
	msgConfig  = subsysQueue + 2

	attrPacketHeader  = 1
	attrVerdictHeader = 2
	attrTimestamp     = 4
	attrPayload       = 10
	attrCapLen        = 13

	configCommand  = 1
	configParams   = 2
	configQueueMax = 3
	configMask     = 4
	configFlags    = 5

	commandBind = 1
	copyPacket  = 2
	flagGSO     = 1 << 2

	verdictDrop   = 0
	verdictAccept = 1

	headerLen  = 16 + 4 // struct nlmsghdr, struct nfgenmsg
	verdictLen = headerLen + 12
	attrType   = 0x3fff
)

var errMalformed = errors.New("malformed nfnetlink_queue message")

// queued is one packet that waits in the kernel for a verdict.
type queued struct {
	queue uint16
	id    uint32
	// arrival is the kernel's CLOCK_REALTIME in ns, 0 where it gave none.
	arrival int64
	// length of the whole packet from its IP header on; head are its first bytes.
	length int
	head   []byte
}

// parsePacket reads one netlink datagram that holds a queued packet. The head
// of the result aliases b. Messages of any other type are errMalformed.
func parsePacket(b []byte) (queued, error) {
	if len(b) < headerLen || binary.NativeEndian.Uint16(b[4:]) != msgPacket {
		return queued{}, errMalformed
	}
	if n := binary.NativeEndian.Uint32(b); n < headerLen || int64(n) > int64(len(b)) {
		return queued{}, errMalformed
	}
	p := queued{queue: binary.BigEndian.Uint16(b[18:])}
	identified := false
	for rest := b[headerLen:binary.NativeEndian.Uint32(b)]; len(rest) >= 4; {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < 4 || n > len(rest) {
			return queued{}, errMalformed
		}
		value := rest[4:n]
		switch binary.NativeEndian.Uint16(rest[2:]) & attrType {
		case attrPacketHeader:
			if len(value) < 7 {
				return queued{}, errMalformed
			}
			p.id, identified = binary.BigEndian.Uint32(value), true
		case attrTimestamp:
			if len(value) < 16 {
				return queued{}, errMalformed
			}
			p.arrival = int64(binary.BigEndian.Uint64(value))*1e9 + int64(binary.BigEndian.Uint64(value[8:]))*1e3
		case attrPayload:
			p.head = value
			p.length = max(p.length, len(value))
		case attrCapLen:
			if len(value) < 4 {
				return queued{}, errMalformed
			}
			p.length = max(p.length, int(binary.BigEndian.Uint32(value)))
		}
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	if !identified {
		return queued{}, errMalformed
	}
	return p, nil
}

// ack is the kernel's answer to a request: its number, which is 0 for verdicts,
// and 0 or a negative errno.
type ack struct {
	number uint32
	code   int32
}

// numberOffset is where a message and its answer have the number of the request
// (nlmsg_seq).
const numberOffset = 8

// parseAck reads the kernel's answer to a request.
func parseAck(b []byte) (a ack, ok bool) {
	const errorType, codeOffset = 2, 16
	if len(b) < codeOffset+4 || binary.NativeEndian.Uint16(b[4:]) != errorType {
		return ack{}, false
	}
	return ack{
		number: binary.NativeEndian.Uint32(b[numberOffset:]),
		code:   int32(binary.NativeEndian.Uint32(b[codeOffset:])),
	}, true
}

// number has a request be known by its answer.
func number(message []byte, n uint32) {
	binary.NativeEndian.PutUint32(message[numberOffset:], n)
}

// appendVerdict appends one verdict message for a packet of a queue.
func appendVerdict(b []byte, queue uint16, id, verdict uint32) []byte {
	b = appendHeader(b, verdictLen, msgVerdict, queue, 0)
	b = appendAttrHeader(b, 8, attrVerdictHeader)
	b = binary.BigEndian.AppendUint32(b, verdict)
	return binary.BigEndian.AppendUint32(b, id)
}

// appendAltered appends a verdict that accepts a packet with other bytes in place
// of its own, from its IP header on. The kernel takes their checksums as they
// are.
func appendAltered(b []byte, queue uint16, id uint32, bytes []byte) []byte {
	const attrHeader, alignment = 4, 4
	start := len(b)
	b = appendVerdict(b, queue, id, verdictAccept)
	b = appendAttrHeader(b, len(bytes), attrPayload)
	b = append(b, bytes...)
	binary.NativeEndian.PutUint32(b[start:], uint32(verdictLen+attrHeader+len(bytes)))
	for (len(b)-start)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// bindMessages ask the kernel for a queue: bind, copy range and queue length.
// gso has super-packets delivered whole, else the kernel segments them first.
func bindMessages(queue uint16, gso bool, copyRange, lengthMax uint32) [][]byte {
	var flags uint32
	if gso {
		flags = flagGSO
	}
	command := binary.NativeEndian.AppendUint16([]byte{commandBind, 0}, 0)
	params := append(binary.BigEndian.AppendUint32(nil, copyRange), copyPacket)
	return [][]byte{
		configMessage(queue, attr(configCommand, command)),
		configMessage(queue, attr(configParams, params)),
		configMessage(queue, attr(configQueueMax, binary.BigEndian.AppendUint32(nil, lengthMax))),
		configMessage(queue,
			attr(configFlags, binary.BigEndian.AppendUint32(nil, flags)),
			attr(configMask, binary.BigEndian.AppendUint32(nil, flagGSO))),
	}
}

func configMessage(queue uint16, attrs ...[]byte) []byte {
	n := headerLen
	for _, a := range attrs {
		n += len(a)
	}
	b := appendHeader(nil, n, msgConfig, queue, nlmAck)
	for _, a := range attrs {
		b = append(b, a...)
	}
	return b
}

const nlmAck = 0x4

func appendHeader(b []byte, length int, message, queue, flags uint16) []byte {
	const nlmRequest = 0x1
	b = binary.NativeEndian.AppendUint32(b, uint32(length))
	b = binary.NativeEndian.AppendUint16(b, message)
	b = binary.NativeEndian.AppendUint16(b, nlmRequest|flags)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // sequence, port
	b = append(b, 0, 0)                   // AF_UNSPEC, NFNETLINK_V0
	return binary.BigEndian.AppendUint16(b, queue)
}

func appendAttrHeader(b []byte, length int, kind uint16) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(length+4))
	return binary.NativeEndian.AppendUint16(b, kind)
}

func attr(kind uint16, value []byte) []byte {
	b := append(appendAttrHeader(nil, len(value), kind), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
