package datagram

import (
	"errors"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// Health says how the way to the gateway does.
func (l *Link) Health() transport.Health {
	now := time.Now()
	h := l.dials.Health(nil, now)
	measure(&h, l.connections(), now)
	h.Settled = l.Path().Ready
	return h
}

// Callers are the gateways of peers that have called, or call by what was offered to them, and
// how their connections do.
func (s *Server) Callers() map[identity.Name]transport.Health {
	of := map[identity.Name][]*connection{}
	for _, c := range s.connections() {
		of[c.peer] = append(of[c.peer], c.connection)
	}
	all, now := make(map[identity.Name]transport.Health, len(of)), time.Now()
	for peer, open := range of {
		h := transport.Health{State: transport.Up}
		measure(&h, open, now)
		all[peer] = h
	}
	return all
}

// measure adds what QUIC knows of connections that are open: where none of them hears the
// other end, that is not reachable.
func measure(h *transport.Health, open []*connection, now time.Time) {
	var rtt time.Duration
	var heard int64
	for _, c := range open {
		stats := c.conn.ConnectionStats()
		h.Segments += stats.PacketsSent
		h.Retransmitted += stats.PacketsLost
		rtt += stats.SmoothedRTT
		if h.MinRTT == 0 || stats.MinRTT < h.MinRTT {
			h.MinRTT = stats.MinRTT
		}
		if c.count() == 0 {
			h.Idle++
		}
		heard = max(heard, c.heard.Load())
	}
	if h.Connections = len(open); h.Connections == 0 {
		return
	}
	h.RTT = rtt / time.Duration(h.Connections)
	if now.UnixNano()-heard >= int64(quietAfter) {
		h.Silent(time.Unix(0, heard))
	}
}

// refuses says whether a connection was ended by the peer because of who we are: by an alert
// of TLS (RFC 9001 section 4.8), or when it looked again.
func refuses(why error) bool {
	if tls, ok := errors.AsType[*quic.TransportError](why); ok {
		return tls.Remote && tls.ErrorCode.IsCryptoError()
	}
	ended, ok := errors.AsType[*quic.ApplicationError](why)
	return ok && ended.Remote && ended.ErrorCode == quic.ApplicationErrorCode(transport.Denied)
}
