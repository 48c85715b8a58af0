package control

import (
	"net"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// questions is a packet socket that hears at an interface who asks for the MAC of an
// address, by ARP or neighbour discovery, and nothing else.
func questions(device string) (socket int, err error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	// Without a protocol nothing comes before the filter is there.
	socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = filter(socket); err == nil {
		err = unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: link.Index})
	}
	if err != nil {
		_ = unix.Close(socket) // the first error tells why
		return -1, err
	}
	return socket, nil
}

// filter passes requests of ARP (RFC 826) and neighbour solicitations (RFC 4861 §4.3) that
// came in.
func filter(socket int) error {
	const (
		whole         = 1 << 16
		etherType     = 12
		arpOperation  = 14 + 6
		arpRequest    = 1
		nextHeader    = 14 + 6
		icmpType      = 14 + 40
		solicitations = 135
	)
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 9},
		bpf.LoadAbsolute{Off: etherType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipFalse: 2},
		bpf.LoadAbsolute{Off: arpOperation, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arpRequest, SkipTrue: 6, SkipFalse: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 4},
		bpf.LoadAbsolute{Off: nextHeader, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipFalse: 2},
		bpf.LoadAbsolute{Off: icmpType, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: solicitations, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: whole},
	})
	if err != nil {
		return err
	}
	instructions := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		instructions[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(instructions)), Filter: unsafe.SliceData(instructions), //nolint:gosec // a few
	})
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }
