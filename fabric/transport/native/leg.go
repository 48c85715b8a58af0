package native

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/fabric/transport"
)

// leg is the connection of TCP below one of two gateways. The zero value is one of
// another kind, which cannot be told anything and tells nothing.
type leg struct {
	tcp  *net.TCPConn
	last *tally
}

// tally is what TCP had counted when it was last looked at, by one who looks alone.
type tally struct{ packets, lost uint32 }

func legOf(conn net.Conn) leg {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	tcp, _ := conn.(*net.TCPConn)
	return leg{tcp, &tally{}}
}

// tcpRTOMaxMs bounds the pause between two tries of TCP to be heard (TCP_RTO_MAX_MS of
// linux/tcp.h), which else doubles to two minutes: a stream goes on as soon as a link that
// was cut is there again.
const (
	tcpRTOMaxMs = 44
	rtoMost     = time.Second
)

// tune has the leg use a congestion control of its own, where one is named, and try
// often to be heard by a peer that is silent.
func (l leg) tune(congestion string) error {
	if l.tcp == nil {
		return nil
	}
	return l.control(func(fd int) error {
		err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMaxMs, int(rtoMost.Milliseconds()))
		if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.15
			err = nil
		}
		if err != nil || congestion == "" {
			return err
		}
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion); err != nil {
			return fmt.Errorf("congestion control %s: %w", congestion, err)
		}
		return nil
	})
}

// info is what TCP knows of the path, nil where it knows nothing any more.
func (l leg) info() *unix.TCPInfo {
	if l.tcp == nil {
		return nil
	}
	return transport.InfoOf(l.tcp)
}

// since gives what TCP has sent, and sent again, since it was last looked at.
func (l leg) since() (packets, lost uint32) {
	i := l.info()
	if i == nil {
		return 0, 0
	}
	packets, lost = i.Data_segs_out-l.last.packets, i.Total_retrans-l.last.lost
	*l.last = tally{i.Data_segs_out, i.Total_retrans}
	return packets, lost
}

func (l leg) control(do func(fd int) error) error {
	raw, err := l.tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// HasCongestion says whether the kernel lets this process use a congestion control.
func HasCongestion(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was said over it
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}
