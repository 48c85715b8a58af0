package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
)

const (
	// streamChunk is how much of a stream is echoed at once.
	streamChunk = 64 << 10
	// packetBuffer is the receive buffer asked for, in bytes: a pause of the echo
	// must not lose datagrams, which would count as the system's loss.
	packetBuffer = 8 << 20
)

// ServeStream echoes every byte on the connections of l as it arrives, until the
// client has ended its direction or ctx ends; then it closes all connections and
// returns nil. It closes l.
func ServeStream(ctx context.Context, l net.Listener) error {
	s := newServer(nil)
	chunks := &sync.Pool{New: func() any { return new([streamChunk]byte) }}
	s.session = func(nc net.Conn, _ context.CancelFunc) session { return echoStream{nc, chunks} }
	return s.serve(ctx, l)
}

// echoStream is a connection of ServeStream.
type echoStream struct {
	net    net.Conn
	chunks *sync.Pool // of those that no connection has
}

func (e echoStream) serve(context.Context) {
	defer e.close()
	chunk := e.chunks.Get().(*[streamChunk]byte)
	defer e.chunks.Put(chunk)
	for {
		n, err := e.net.Read(chunk[:])
		if n > 0 {
			if _, err := e.net.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// closeIdle closes it in any case: a stream has no requests that could be over.
func (e echoStream) closeIdle() { e.close() }
func (e echoStream) close()     { _ = e.net.Close() }

// ListenPacket opens a UDP socket for ServePackets.
func ListenPacket(ctx context.Context, addr string) (*net.UDPConn, error) {
	c := net.ListenConfig{Control: preparePacket}
	p, err := c.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	return p.(*net.UDPConn), nil // as "udp" always gives
}

// preparePacket sets the socket's options before it is bound, so that the first
// datagram has its time.
func preparePacket(_, _ string, raw syscall.RawConn) error {
	var err error
	set := func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
			err = fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
			return
		}
		// The first is beyond net.core.rmem_max but for root; the second is not.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, packetBuffer) != nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, packetBuffer)
		}
	}
	return errors.Join(raw.Control(set), err)
}

// ServePackets sends every datagram back to where it came from, until ctx ends;
// then it returns nil. One that has a head (see PutDatagram) gets its times. It
// closes conn.
func ServePackets(ctx context.Context, conn *net.UDPConn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	packet, control := make([]byte, DatagramMax), make([]byte, 128)
	for {
		n, size, _, from, err := conn.ReadMsgUDPAddrPort(packet, control)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve %s: %w", conn.LocalAddr(), err)
		}
		if d, err := ReadDatagram(packet[:n]); err == nil {
			d.ArrivedNs, d.AnsweredNs = ArrivalNs(control[:size]), clock.Real()
			PutDatagram(packet, d)
		}
		// A datagram that cannot be sent is lost, as on any network.
		_, _ = conn.WriteToUDPAddrPort(packet[:n], from)
	}
}
