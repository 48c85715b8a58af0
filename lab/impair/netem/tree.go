package netem

import (
	"encoding/binary"
	"math"

	"skerry.dev/skerry/lab/impair"
)

const handleRoot = 0xffffffff

// qdisc is one queueing discipline as RTM_NEWQDISC wants it.
type qdisc struct {
	kind           string
	handle, parent uint32
	options        []byte
}

// qdiscs of the tree, parents before children, for an interface of an IP MTU
// in bytes.
func (t tree) qdiscs(mtu int) []qdisc {
	all := []qdisc{{kind: "prio", handle: t.handle, parent: handleRoot, options: prioOptions()}}
	frame := mtu + impair.EthernetHeader
	for _, c := range t.classes {
		parent := c.id
		for i, s := range c.steps {
			q := qdisc{kind: "netem", handle: s.handle, parent: parent}
			if s.splitter {
				q.kind, q.options = "tbf", splitterOptions(frame)
			} else {
				q.options = netemOptions(s.Impairment, c.Seed^uint64(i)<<40, frame)
			}
			all = append(all, q)
			// A tbf has the one class 1; netem, too, calls its child so.
			parent = s.handle | 1
		}
	}
	return all
}

// prioOptions is struct tc_prio_qopt. A zero priority map sends everything to
// the first band but what names a band by its class.
func prioOptions() []byte {
	const prioritiesMax = 16
	return append(binary.NativeEndian.AppendUint32(nil, bandsMax), make([]byte, prioritiesMax)...)
}

// Attributes of tbf, as linux/pkt_sched.h numbers them.
const (
	tbfParms  = 1
	tbfRate64 = 4
	tbfBurst  = 6
)

// splitterOptions make a tbf that limits nothing, but cannot take more than one
// full frame at once: it has the kernel segment what is larger.
func splitterOptions(frame int) []byte {
	const (
		// unlimited, in bytes a second, lets a full frame go in 2 ns.
		unlimited = 1 << 40
		ethernet  = 1 // TC_LINKLAYER_ETHERNET
		limit     = math.MaxInt32
	)
	rate := []byte{0, ethernet, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff} // struct tc_ratespec
	parms := append(rate, make([]byte, len(rate))...)                     // no peak rate
	parms = appendUint32s(parms, limit, 0, 0)                             // buffer, mtu: tbfBurst says it exactly
	b := appendAttr(nil, tbfParms, parms)
	b = appendAttr(b, tbfRate64, binary.NativeEndian.AppendUint64(nil, unlimited))
	return appendAttr(b, tbfBurst, appendUint32s(nil, uint32(frame)))
}

// appendAttr appends one route attribute, padded to 4 bytes.
func appendAttr(b []byte, kind uint16, value []byte) []byte {
	const header, alignment = 4, 4
	b = binary.NativeEndian.AppendUint16(b, uint16(header+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// appendUint32s appends fields of the kernel's structs.
func appendUint32s(b []byte, fields ...uint32) []byte {
	for _, field := range fields {
		b = binary.NativeEndian.AppendUint32(b, field)
	}
	return b
}
