package oracle

import (
	"strconv"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
)

// Headers of a packet in bytes, without options but TCP's timestamps (RFC 7323),
// which every segment of Linux carries.
const (
	headerIP  = 20
	headerTCP = 20 + 12
	headerUDP = 8
	// segmentMax is what a segment carries (the MSS less the timestamps).
	segmentMax = impair.DefaultMTU - headerIP - headerTCP
	// fragmentMax is what a fragment of a datagram carries, a multiple of 8.
	fragmentMax = (impair.DefaultMTU - headerIP) / 8 * 8
)

// Heads as the load and the workloads write them, without the digits of a
// length. A system may add fields of its own.
const (
	headGet   = "GET / HTTP/1.1\r\nHost: 10.1.0.2:8080\r\nUser-Agent: skerry-agent\r\n\r\n"
	headPost  = "POST / HTTP/1.1\r\nHost: 10.1.0.2:8080\r\nUser-Agent: skerry-agent\r\nContent-Type: application/octet-stream\r\nContent-Length: \r\n\r\n"
	headEmpty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	headBody  = "HTTP/1.1 200 OK\r\nContent-Length: \r\nContent-Type: application/octet-stream\r\n\r\n"
	headClose = "Connection: close\r\n"
)

// Frames of HTTP/2 (RFC 9113 §4.1): one of about headHTTP2 bytes for the fields,
// compressed, and one for every dataMax of the body.
const (
	frameHeader = 9
	headHTTP2   = frameHeader + 70
	dataMax     = 16 << 10
	// flowControlled is how many segments the flow control of a new connection
	// lets pass (65,535 bytes, RFC 9113 §6.9.2).
	flowControlled = 65_535 / segmentMax
)

// What a message of a broker has beside its body: of MQTT 3.1.1 the length, the topic
// and the identifier; of AMQP 0-9-1 the frames of method and header, with the names
// of exchange and queue, there, and that of the consumer as well, back. Each body
// frame of AMQP has frameAMQP more. Acknowledgements are left out.
const (
	headMQTT      = 18
	headAMQPThere = 69
	headAMQPBack  = 107
	frameAMQP     = 8
	bodyAMQP      = 128<<10 - frameAMQP
)

// message is a request or an answer on the wire.
type message struct {
	// segments of TCP, or fragments of a datagram.
	segments int
	// bytes of all frames, as a rate counts them, of the first, which none is larger than,
	// and of the last.
	bytes, frame, last int
}

func messages(c experiment.Cell) (request, answer message) {
	there, back := c.Bodies()
	switch c.Protocol {
	case experiment.ProtocolUDP:
		return datagram(int(there)), datagram(int(back))
	case experiment.ProtocolOneWay:
		return datagram(int(there)), message{}
	case experiment.ProtocolTCP:
		return stream(int(there)), stream(int(back))
	case experiment.ProtocolHTTP2:
		return stream(framed(int(there))), stream(framed(int(back)))
	case experiment.ProtocolMQTT:
		return stream(headMQTT + int(there)), stream(headMQTT + int(back))
	case experiment.ProtocolAMQP:
		return stream(headAMQPThere + inFrames(int(there))), stream(headAMQPBack + inFrames(int(back)))
	}
	return stream(headed(headGet, headPost, there, c.Connection)), stream(headed(headEmpty, headBody, back, c.Connection))
}

// headed is the length of a body with its head of HTTP/1.1.
func headed(without, with string, body quantity.Size, connection string) int {
	n := len(without)
	if body > 0 {
		n = len(with) + len(strconv.Itoa(int(body))) + int(body)
	}
	if connection == experiment.ConnectionNew {
		n += len(headClose)
	}
	return n
}

func framed(body int) int { return headHTTP2 + body + frameHeader*divided(body, dataMax) }

func inFrames(body int) int { return body + frameAMQP*divided(body, bodyAMQP) }

func stream(bytes int) message {
	return packets(bytes, segmentMax, headerTCP+headerIP+impair.EthernetHeader)
}

func datagram(bytes int) message {
	return packets(bytes+headerUDP, fragmentMax, headerIP+impair.EthernetHeader)
}

// packets divides bytes into packets that carry most each.
func packets(bytes, most, header int) message {
	n := max(divided(bytes, most), 1)
	return message{segments: n, bytes: bytes + n*header, frame: min(bytes, most) + header, last: bytes - (n-1)*most + header}
}

// divided rounds up.
func divided(n, by int) int { return (n + by - 1) / by }
