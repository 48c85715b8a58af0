package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/workload"
)

// stamps are CLOCK_REALTIME ns at which a datagram was sent, arrived at the
// service, was answered and came back; 0 where that was not seen.
type stamps struct{ sent, arrived, answered, received int64 }

// datagrams speaks UDP: one datagram there, the same one back. Each carries a number, so
// that the echo of another request is told apart: in the header of package workload, or
// where that does not fit in its first bytes, of which it has numberMax at most.
type datagrams struct {
	// packet is sent: the payload, but for its header.
	packet, payload []byte
	// stamped means that packets have a header.
	stamped  bool
	sequence uint32
	control  [controlSize]byte
}

const (
	// controlSize holds a timestamp of the kernel, with room.
	controlSize = 64
	// datagramCost is what each takes of a link's budget beside its bytes, as on the
	// wire: the headers of IPv4 and UDP. So there is an end to empty ones, too.
	datagramCost = 28
)

func newDatagrams(payload []byte) *datagrams {
	return &datagrams{packet: bytes.Clone(payload), payload: payload, stamped: len(payload) >= workload.DatagramHeader}
}

// numberMax is how many bytes of a datagram without a header are its number.
const numberMax = 4

// number writes the number of a request that has no header.
func (d *datagrams) number() {
	var number [numberMax]byte
	binary.LittleEndian.PutUint32(number[:], d.sequence) // the first byte alone differs from that before
	copy(d.packet, number[:])
}

// read says whether a datagram has the number of the request that was sent last, or none;
// it leaves the payload in the number's place, to be compared.
func (d *datagrams) read(got []byte) (head workload.Datagram, own bool) {
	head, err := workload.ReadDatagram(got)
	size, own := workload.DatagramHeader, err == nil && head.Sequence == d.sequence
	if !d.stamped {
		size = min(numberMax, len(d.packet))
		own = len(got) != len(d.packet) || bytes.Equal(got[:size], d.packet[:size])
	}
	if own {
		copy(got, d.payload[:size])
	}
	return head, own
}

// begin asks for the kernel's times of arrival. Without them the clock is read
// after the datagram, which adds the time to wake up.
func (d *datagrams) begin(l *link) error {
	_ = unix.SetsockoptInt(l.socket.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	return nil
}

func (d *datagrams) exchange(l *link, buf []byte) (answer, error) {
	// What lies there came too late for the request that it answers.
	for l.socket.readable {
		if _, _, err := d.tryReceive(l, buf); err != nil {
			return answer{}, err
		}
	}
	l.firstByte, l.lastByte = 0, 0
	d.sequence++
	if d.stamped {
		workload.PutDatagram(d.packet, workload.Datagram{Sequence: d.sequence})
	} else {
		d.number()
	}
	sent := clock.Real()
	lost := answer{stamps: stamps{sent: sent}}
	if _, err := l.socket.Write(d.packet); err != nil {
		return lost, err
	}
	for {
		n, received, err := d.receive(l, buf)
		if err != nil {
			return lost, err
		}
		head, own := d.read(buf[:n])
		switch {
		case !own:
			l.firstByte, l.lastByte = 0, 0
		case !d.stamped:
			return answer{length: n}, nil
		default:
			return answer{length: n, stamps: stamps{sent, head.ArrivedNs, head.AnsweredNs, received}}, nil
		}
	}
}

// receive waits for a datagram; received is when it arrived, CLOCK_REALTIME ns.
func (d *datagrams) receive(l *link, buf []byte) (n int, received int64, err error) {
	for {
		for !l.socket.readable {
			if err := l.socket.await(); err != nil {
				return 0, 0, err
			}
		}
		n, received, err = d.tryReceive(l, buf)
		if n > 0 || err != nil {
			return n, received, err
		}
	}
}

// tryReceive receives what there is: nothing, without an error, where it would
// block and of an empty datagram, which answers nothing.
func (d *datagrams) tryReceive(l *link, buf []byte) (n int, received int64, err error) {
	if l.budget <= 0 {
		return 0, 0, fmt.Errorf("%w: datagrams of others", errTooLong)
	}
	n, size, _, _, err := unix.Recvmsg(l.socket.fd, buf, d.control[:], 0)
	switch {
	case errors.Is(err, unix.EAGAIN):
		l.socket.readable = false
		return 0, 0, nil
	case errors.Is(err, unix.EINTR):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	l.budget -= datagramCost
	if n == 0 {
		return 0, 0, nil
	}
	l.stamp(n)
	if received = workload.ArrivalNs(d.control[:size]); received == 0 {
		received = clock.Real()
	}
	return n, received, nil
}
