package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/net/netutil"
)

const (
	// queryMax is the longest query; those that clients send have some hundred bytes.
	queryMax = 4096
	// streamsMax bounds connections of TCP, each of which has a goroutine; more wait.
	streamsMax = 64
	// idle is how long a connection may take for its next query, or for an answer.
	idle = 5 * time.Second
)

// Server answers at an address, by UDP and by TCP. It is safe for concurrent use.
//
// A query by UDP: socket → Reply → socket, one after the other in one goroutine. An
// answer takes microseconds and waits for nothing, so that there is no queue but the
// socket's, which drops what is too much.
type Server struct {
	zone atomic.Pointer[Zone]
	udp  *net.UDPConn
	tcp  net.Listener
}

// Listen begins to listen at HOST:PORT, where the port is free in both protocols.
func Listen(address string) (*Server, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	udp := conn.(*net.UDPConn)
	// Of a socket at all addresses, answers come from the one that was asked. Which family
	// it is of, one of them says by failing.
	if err := ipv6.NewPacketConn(udp).SetControlMessage(ipv6.FlagDst, true); err != nil {
		if err := ipv4.NewPacketConn(udp).SetControlMessage(ipv4.FlagDst, true); err != nil {
			return nil, errors.Join(fmt.Errorf("ask for the addresses of queries: %w", err), udp.Close())
		}
	}
	tcp, err := net.Listen("tcp", udp.LocalAddr().String())
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	s := &Server{udp: udp, tcp: netutil.LimitListener(tcp, streamsMax)}
	s.Set(NewZone(nil))
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.udp.LocalAddr().String() }

// Set has the next answers come from a zone.
func (s *Server) Set(z *Zone) { s.zone.Store(z) }

// Close ends what listens. Connections end with Serve's context.
func (s *Server) Close() error { return errors.Join(s.udp.Close(), s.tcp.Close()) }

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(s.datagrams)
	for {
		conn, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of one connection, or there are too many files
			time.Sleep(pause)
			continue
		}
		running.Go(func() { s.stream(ctx, conn) })
	}
}

// pause is how long it rests when it could not take what came.
const pause = 50 * time.Millisecond

// datagrams answers those.
func (s *Server) datagrams() {
	b := make([]byte, queryMax)
	for {
		n, from, err := dns.ReadFromSessionUDP(s.udp, b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // there is no memory for it, say
			time.Sleep(pause)
			continue
		}
		if answer := s.zone.Load().Reply(b[:n], false); answer != nil {
			_, _ = dns.WriteToSessionUDP(s.udp, answer, from) // who does not hear it asks again
		}
	}
}

// stream answers one query after the other on a connection, which a query that is too
// long ends.
func (s *Server) stream(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	messages := &dns.Conn{Conn: conn}
	b := make([]byte, queryMax)
	for {
		_ = conn.SetDeadline(time.Now().Add(idle)) // a connection that is gone, the read tells
		n, err := messages.Read(b)
		if err != nil {
			return
		}
		answer := s.zone.Load().Reply(b[:n], true)
		if answer == nil {
			return
		}
		if _, err := messages.Write(answer); err != nil {
			return
		}
	}
}
