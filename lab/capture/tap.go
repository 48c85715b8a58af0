package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	// packetMax is as large as a packet can get, super-packets too, in bytes.
	packetMax = 1 << 18
	// waitingMax bounds the memory of packets that wait in the kernel at one point,
	// in bytes; the kernel takes twice the number and counts its own overhead.
	waitingMax = 32 << 20
	// stampsBegin is what the kernel needs, at most, until it stamps all packets.
	stampsBegin = 10 * time.Millisecond
)

// tap is the socket at a point, and the oldest packet from it.
type tap struct {
	Point
	fd     int
	buffer []byte
	// full says that head and the buffer hold a packet.
	full    bool
	head    gopacket.CaptureInfo
	written uint64
}

// open makes a packet socket that hears nothing but what is asked for: it is bound
// to the interface after its filter is in place.
func open(p Point, keep int, wanted []bpf.RawInstruction) (*tap, error) {
	if keep <= 0 {
		keep = packetMax
	}
	filter, err := p.filter(wanted)
	if err != nil {
		return nil, err
	}
	t := &tap{Point: p, fd: -1, buffer: make([]byte, min(keep, packetMax))}
	err = p.Within(func() error {
		device, err := net.InterfaceByName(p.Device)
		if err != nil {
			return err
		}
		const nothingYet = 0
		t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, nothingYet)
		if err != nil {
			return fmt.Errorf("open packet socket: %w", err)
		}
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		err = errors.Join(
			unix.SetsockoptSockFprog(t.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
			unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waitingMax),
			unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		)
		if err != nil {
			return fmt.Errorf("set up packet socket: %w", err)
		}
		time.Sleep(stampsBegin)
		all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
		return unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
	})
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// filter is a classic BPF program over an Ethernet frame: what is of the point goes
// on to the program of the packets that are wanted.
func (p Point) filter(wanted []bpf.RawInstruction) ([]unix.SockFilter, error) {
	const (
		outgoing = unix.PACKET_OUTGOING
		// refuse stands for the distance to the instruction that refuses, which is
		// known when all are there.
		refuse = 0xff
	)
	wrongWay := bpf.JumpNotEqual
	if !p.Outgoing {
		wrongWay = bpf.JumpEqual
	}
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType}, bpf.JumpIf{Cond: wrongWay, Val: outgoing, SkipTrue: refuse},
	}
	program = append(program, p.between(refuse)...)
	// It stands before what is wanted: a jump reaches no further than 255.
	program = append(program, bpf.Jump{Skip: 1}, bpf.RetConstant{Val: 0})
	for i, instruction := range program {
		if jump, ok := instruction.(bpf.JumpIf); ok && jump.SkipTrue == refuse {
			jump.SkipTrue = uint8(len(program) - 1 - i - 1)
			program[i] = jump
		}
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble filter: %w", err)
	}
	raw = append(raw, wanted...)
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, nil
}

// between goes on where a packet is between the networks of the point.
func (p Point) between(refuse uint8) []bpf.Instruction {
	const (
		etherTypeAt               = 12
		sourceAt, destinationAt   = 26, 30
		sourceAt6, destinationAt6 = 22, 38
	)
	if !p.Source.IsValid() {
		return nil
	}
	kind := bpf.LoadAbsolute{Off: etherTypeAt, Size: 2}
	four := append(inNetwork(sourceAt, p.Source, refuse), inNetwork(destinationAt, p.Destination, refuse)...)
	only := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: refuse}
	if !p.Source6.IsValid() {
		return append([]bpf.Instruction{kind, only}, four...)
	}
	six := append(inNetwork(sourceAt6, p.Source6, refuse), inNetwork(destinationAt6, p.Destination6, refuse)...)
	six = append(six, bpf.Jump{Skip: uint32(len(four) + 1)}) // past only and four
	other := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IPV6, SkipTrue: uint8(len(six))}
	return slices.Concat([]bpf.Instruction{kind, other}, six, []bpf.Instruction{only}, four)
}

// inNetwork goes on where the address at an offset is of a network.
func inNetwork(at uint32, network netip.Prefix, refuse uint8) []bpf.Instruction {
	const word = 4
	mask := net.CIDRMask(network.Bits(), network.Addr().BitLen())
	wanted := network.Masked().Addr().AsSlice()
	var all []bpf.Instruction
	for i := 0; i < len(mask) && mask[i] > 0; i += word {
		all = append(all,
			bpf.LoadAbsolute{Off: at + uint32(i), Size: word},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: binary.BigEndian.Uint32(mask[i:])},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(wanted[i:]), SkipTrue: refuse})
	}
	return all
}

// fill reads the next packet, if there is one and none is held.
func (t *tap) fill() error {
	var control [64]byte
	for !t.full {
		// MSG_TRUNC has the kernel tell the length of the whole packet.
		n, m, _, _, err := unix.Recvmsg(t.fd, t.buffer, control[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENETDOWN):
			continue // the interface is down; the kernel says so once
		case err != nil:
			return fmt.Errorf("capture at %s: %w", t.Name, err)
		}
		stamp, err := timestamp(control[:m])
		if err != nil {
			return fmt.Errorf("capture at %s: %w", t.Name, err)
		}
		t.full = true
		t.head = gopacket.CaptureInfo{Timestamp: stamp, CaptureLength: min(n, len(t.buffer)), Length: n}
	}
	return nil
}

var errNoTimestamp = errors.New("the kernel gave no time stamp")

// timestamp reads the time that the kernel saw a packet at, by its wall clock.
func timestamp(control []byte) (time.Time, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, err
	}
	const seconds, size = 8, 16
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= size {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[seconds:]))), nil
		}
	}
	return time.Time{}, errNoTimestamp
}

// take gives the packet away that is held; its bytes are valid until fill.
func (t *tap) take() (gopacket.CaptureInfo, []byte) {
	t.full = false
	t.written++
	return t.head, t.buffer[:t.head.CaptureLength]
}

// dropped is how many packets did not fit into waitingMax since it was last asked.
func (t *tap) dropped() (uint64, error) {
	s, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("count drops at %s: %w", t.Name, err)
	}
	return uint64(s.Drops), nil
}

func (t *tap) close() error {
	if t.fd < 0 {
		return nil
	}
	err := unix.Close(t.fd)
	t.fd = -1
	return err
}
