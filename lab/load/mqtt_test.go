package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload/broker"
)

// mirrorMQTT is a broker of one client to a connection, by the codec of another
// project: what it does not understand ends the connection. publish says what
// becomes of a message; by default it comes back behind its acknowledgement.
type mirrorMQTT struct {
	publish func(p *packets.PublishPacket, say func(packets.ControlPacket))

	mu sync.Mutex
	// connects, subscribes and acknowledged are what clients said.
	connects     []*packets.ConnectPacket
	subscribes   []*packets.SubscribePacket
	acknowledged []uint16
}

func (m *mirrorMQTT) serve(conn net.Conn) {
	say := func(p packets.ControlPacket) { _ = p.Write(conn) } // who has gone needs no answer
	for {
		packet, err := packets.ReadPacket(conn)
		if err != nil {
			return
		}
		m.mu.Lock()
		switch p := packet.(type) {
		case *packets.ConnectPacket:
			m.connects = append(m.connects, p)
			say(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			m.subscribes = append(m.subscribes, p)
			ack := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			ack.MessageID, ack.ReturnCodes = p.MessageID, p.Qoss
			say(ack)
		case *packets.PubackPacket:
			m.acknowledged = append(m.acknowledged, p.MessageID)
		case *packets.PublishPacket:
			if m.publish == nil {
				say(puback(p))
				say(delivery(p))
			} else {
				m.publish(p, say)
			}
		}
		m.mu.Unlock()
	}
}

func puback(p *packets.PublishPacket) packets.ControlPacket {
	ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	ack.MessageID = p.MessageID
	return ack
}

// theirID is the packet identifier that the mirror gives to each delivery.
const theirID = 4711

func delivery(p *packets.PublishPacket) *packets.PublishPacket {
	d := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	d.TopicName, d.Qos, d.MessageID, d.Payload = p.TopicName, p.Qos, theirID, p.Payload
	return d
}

func mqttSpec(target string, size quantity.Size, n int) Spec {
	return Spec{
		Target: target, Workload: broker.Mosquitto, Protocol: broker.MQTT, Size: size, Iterations: n,
		Timeout: patience,
	}
}

// What the load says is what another project's codec reads: a clean session without
// keep-alive, one subscription at QoS 1 for each connection, messages at QoS 1 to
// that topic, an acknowledgement for each that comes back.
func TestMQTT(t *testing.T) {
	var published []*packets.PublishPacket
	mirror := &mirrorMQTT{publish: func(p *packets.PublishPacket, say func(packets.ControlPacket)) {
		published = append(published, p)
		say(delivery(p))
		say(puback(p))
	}}
	rows := run(t, mqttSpec(startRaw(t, mirror.serve), 100, 3))
	ordered(t, rows)
	if got := errorsOf(rows); !slices.Equal(got, make([]string, 3)) {
		t.Fatalf("errors %q", got)
	}
	mirror.mu.Lock()
	defer mirror.mu.Unlock()
	if len(mirror.connects) != 1 || len(mirror.subscribes) != 1 || len(published) != 3 {
		t.Fatalf("%d connections, %d subscriptions, %d messages", len(mirror.connects), len(mirror.subscribes), len(published))
	}
	if c := mirror.connects[0]; c.ProtocolName != "MQTT" || c.ProtocolVersion != 4 || !c.CleanSession || c.Keepalive != 0 || c.Validate() != packets.Accepted {
		t.Errorf("connects by %+v", c)
	}
	if s := mirror.subscribes[0]; !slices.Equal(s.Qoss, []byte{1}) || len(s.Topics) != 1 || s.Topics[0] != published[0].TopicName {
		t.Errorf("subscribes to %q at QoS %v", s.Topics, s.Qoss)
	}
	for i, p := range published {
		if int(p.MessageID) != i+1 || p.Qos != 1 || p.Dup || p.Retain || !bytes.Equal(p.Payload, payload(100, 0)) {
			t.Errorf("message %d: %v", i, p)
		}
	}
	// The last is sent as the load ends.
	if n := len(mirror.acknowledged); n < 2 || mirror.acknowledged[0] != theirID {
		t.Errorf("acknowledged %v", mirror.acknowledged)
	}
}

// Two acknowledgements travel beside a message: neither is in its response time, and
// a thread goes on when both are in.
func TestMQTTAcknowledgements(t *testing.T) {
	t.Parallel() // it sleeps
	const pause = 60 * time.Millisecond
	for _, c := range []struct {
		name string
		late func(p *packets.PublishPacket) (now, then packets.ControlPacket)
		// response, first byte and the next request come before or after the pause.
		response, first, next bool
	}{
		{"acknowledged late", func(p *packets.PublishPacket) (now, then packets.ControlPacket) { return delivery(p), puback(p) }, false, false, true},
		{"delivered late", func(p *packets.PublishPacket) (now, then packets.ControlPacket) { return puback(p), delivery(p) }, true, true, true},
	} {
		mirror := &mirrorMQTT{publish: func(p *packets.PublishPacket, say func(packets.ControlPacket)) {
			now, later := c.late(p)
			say(now)
			time.Sleep(pause)
			say(later)
		}}
		rows := run(t, mqttSpec(startRaw(t, mirror.serve), 100, 2))
		if got := errorsOf(rows); !slices.Equal(got, []string{"", ""}) {
			t.Fatalf("%s: errors %q", c.name, got)
		}
		r := rows[0]
		if got := time.Duration(r.LastByteNs - r.SentNs); (got >= pause) != c.response {
			t.Errorf("%s: the message took %s", c.name, got)
		}
		if got := time.Duration(r.FirstByteNs - r.SentNs); (got >= pause) != c.first {
			t.Errorf("%s: its first byte took %s", c.name, got)
		}
		if got := time.Duration(rows[1].ScheduledNs - r.SentNs); (got >= pause) != c.next {
			t.Errorf("%s: the next is due after %s", c.name, got)
		}
	}
}

// Packets of a broker that accepts a thread's first connection, as they lie on the
// wire.
const (
	connack    = "\x20\x02\x00\x00"
	suback     = "\x90\x03\x00\x01\x01"
	admitted   = connack + suback
	firstTopic = "\x00\x0askerry/0/1"
	firstAck   = "\x40\x02\x00\x01"
)

// back is a message of four bytes that comes back.
func back(body string) string {
	return "\x32" + string(rune(14+len(body))) + firstTopic + "\x12\x67" + body
}

// hostile is a target that says the greeting at once, the rest when it has been sent
// a message, and no more; stays keeps the connection open.
func hostile(t *testing.T, greeting, rest string, stays bool) string {
	return startRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, greeting)
		if rest != "" {
			var heard []byte
			for part := make([]byte, 1024); !bytes.Contains(heard, payload(4, 0)); {
				n, err := conn.Read(part)
				if err != nil {
					return
				}
				heard = append(heard, part[:n]...)
			}
			_, _ = io.WriteString(conn, rest)
		}
		if !stays {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn) // so that no reset takes away what was said
	})
}

// Whatever a broker says, a request ends with a class.
func TestMQTTErrorClasses(t *testing.T) {
	t.Parallel() // it waits for timeouts
	body := string(payload(4, 0))
	for _, c := range []struct {
		name, greeting, rest string
		stays                bool
		want                 string
	}{
		{"nothing", "", "", false, "dial " + classClosed},
		{"silence", "", "", true, "dial " + classTimeout},
		{"half an answer", connack[:3], "", false, "dial " + classShortHead},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", "", false, "dial " + classMalformed},
		{"a refusal", "\x20\x02\x00\x05", "", false, "dial " + classDenied},
		{"a refused subscription", connack + "\x90\x03\x00\x01\x80", "", false, "dial " + classDenied},
		{"a lesser QoS", connack + "\x90\x03\x00\x01\x00", "", false, "dial " + classDenied},
		{"another subscription", connack + "\x90\x03\x00\x02\x01", "", false, "dial " + classMalformed},
		{"an acknowledgement of no size", "\x20\x00", "", false, "dial " + classMalformed},
		{"a length without end", "\x20\xff\xff\xff\xff\xff", "", false, "dial " + classMalformed},
		{"no message", admitted, "", false, classClosed},
		{"no message for long", admitted, "", true, classTimeout},
		{"an acknowledgement alone", admitted, firstAck, true, classTimeout},
		{"a message alone", admitted, back(body), true, classTimeout},
		{"an answer before the question", admitted + firstAck + back(body), "", false, classTrailing},
		{"an acknowledgement of another", admitted, "\x40\x02\x00\x02", false, classMalformed},
		{"an acknowledgement twice", admitted, firstAck + firstAck, false, classMalformed},
		{"a message twice", admitted, back(body) + back(body), false, classMalformed},
		{"a message too many", admitted, firstAck + back(body) + back(body), false, classTrailing},
		{"another topic", admitted, "\x32\x12\x00\x0askerry/0/2\x12\x67" + body, false, classMalformed},
		{"a longer topic", admitted, "\x32\x12\xff\xffskerry/0/2\x12\x67" + body, false, classMalformed},
		{"another QoS", admitted, "\x30" + back(body)[1:], false, classMalformed},
		{"another body", admitted, firstAck + back("else"), false, classWrongBody},
		{"a shorter body", admitted, firstAck + back("sho"), false, classShortBody},
		{"a longer body", admitted, firstAck + back("longer"), false, classLongBody},
		{"half a body", admitted, firstAck + back(body)[:17], false, classShortBody},
		{"half a head", admitted, firstAck + back(body)[:6], false, classShortHead},
		{"a message of 256 MB", admitted, "\x32\xff\xff\xff\x7f" + firstTopic + "\x12\x67" + body, true, classLongBody},
		{"no size for a topic", admitted, "\x32\x01\x00\x0a", false, classMalformed},
	} {
		wantClass(t, c.name, mqttSpec(hostile(t, c.greeting, c.rest, c.stays), 4, 1), c.want)
	}
}

// wantClass runs a load whose only request must fail in that way.
func wantClass(t *testing.T, name string, s Spec, want string) {
	t.Helper()
	s.Timeout = patience
	if strings.HasSuffix(want, classTimeout) {
		s.Timeout = impatience
	}
	result, err := Run(t.Context(), s)
	if !errors.Is(err, ErrNoAnswer) || len(result.Requests) != 1 || result.Requests[0].Error != want {
		t.Errorf("%s: rows %+v, error %v; want one of class %q", name, result.Requests, err, want)
	}
}

// A broker that ends while the load runs costs the message under way, then each dial.
func TestBrokerEnds(t *testing.T) {
	t.Parallel() // threads back off
	for _, protocol := range []string{broker.MQTT, broker.AMQP} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		const passed = 3
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			seen := 0
			end := func() bool {
				if seen++; seen <= passed {
					return false
				}
				_ = l.Close()
				_ = conn.Close()
				return true
			}
			mirrorOf(protocol, end)(conn)
		}()
		s := brokerSpec(protocol, l.Addr().String(), 100, 5)
		result, err := Run(t.Context(), s)
		got := errorsOf(result.Requests)
		if err != nil || len(got) != 5 || !slices.Equal(got[:passed], make([]string, passed)) ||
			got[3] != classClosed && got[3] != classReset || got[4] != "dial "+classRefused {
			t.Errorf("%s: errors %q, %v", protocol, got, err)
		}
	}
}

// mirrorOf is the mirror of a protocol; ends is asked before each message.
func mirrorOf(protocol string, ends func() bool) func(net.Conn) {
	if protocol == broker.AMQP {
		return (&mirrorAMQP{ends: ends}).serve
	}
	return (&mirrorMQTT{publish: func(p *packets.PublishPacket, say func(packets.ControlPacket)) {
		if ends != nil && ends() {
			return
		}
		say(puback(p))
		say(delivery(p))
	}}).serve
}

func brokerSpec(protocol, target string, size quantity.Size, n int) Spec {
	s := mqttSpec(target, size, n)
	if protocol == broker.AMQP {
		s.Workload, s.Protocol = broker.RabbitMQ, broker.AMQP
	}
	return s
}

// Messages of every size come back whole, on connections that are kept or new, in a
// closed loop and in an open one.
func TestBrokers(t *testing.T) {
	for _, protocol := range []string{broker.MQTT, broker.AMQP} {
		target := startRaw(t, mirrorOf(protocol, nil))
		for _, size := range []quantity.Size{1, 127, 10e3, 128 << 10, 256<<10 + 1, 5e6} {
			for _, connection := range []string{Kept, New} {
				s := brokerSpec(protocol, target, size, 3)
				s.Connection, s.Threads, s.Warmup, s.Iterations = connection, 2, 1, 2
				s.Timeout = quantity.Duration(10 * time.Second)
				rows := run(t, s)
				ordered(t, rows)
				checkRows(t, protocol+" of "+size.String(), rows, connection)
			}
		}
		s := brokerSpec(protocol, target, 100, 0)
		s.OpenLoop, s.Threads = OpenLoop{Rate: 200, Duration: quantity.Duration(100 * time.Millisecond)}, 2
		if got := errorsOf(run(t, s)); !slices.Equal(got, make([]string, 20)) {
			t.Errorf("%s: an open loop has the errors %q", protocol, got)
		}
	}
}

// checkRows wants three rows without error of each of two threads.
func checkRows(t *testing.T, name string, rows []sample.Request, connection string) {
	t.Helper()
	if len(rows) != 6 {
		t.Errorf("%s, %s: %d rows, want 6", name, connection, len(rows))
	}
	for i, r := range rows {
		want := int32(i%3 + 1)
		if r.Error != "" || r.Status != 0 || r.Warmup != (want == 1) {
			t.Errorf("%s, %s: row %d: %+v", name, connection, i, r)
		}
		if connection == Kept && r.Index != want || connection == New && (r.Index != 1 || r.Connection != want) {
			t.Errorf("%s, %s: row %d is request %d of connection %d", name, connection, i, r.Index, r.Connection)
		}
	}
}

// The end of ctx ends a load whose broker says nothing.
func TestBrokersAreCancelled(t *testing.T) {
	for _, protocol := range []string{broker.MQTT, broker.AMQP} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s := brokerSpec(protocol, hostile(t, "", "", true), 100, 10)
		s.Timeout, s.Threads = quantity.Duration(time.Hour), 3
		result, err := Run(ctx, s)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || len(result.Requests) != 0 {
			t.Errorf("%s: rows %+v, error %v", protocol, result.Requests, err)
		}
	}
}

func TestBadBrokerSpecs(t *testing.T) {
	for says, spoil := range map[string]func(*Spec){
		`protocol "tcp": mosquitto speaks mqtt`:  func(s *Spec) { s.Protocol = "tcp" },
		`protocol "": rabbitmq speaks amqp`:      func(s *Spec) { s.Protocol, s.Workload = "", broker.RabbitMQ },
		`protocol "mqtt" is none of http/1.1,`:   func(s *Spec) { s.Workload = "payload-echo" },
		"size 0B: a message has at least 1 byte": func(s *Spec) { s.Size = 0 },
	} {
		s := mqttSpec("127.0.0.1:1883", 100, 1)
		spoil(&s)
		if err := s.Check(); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) {
			t.Errorf("got error %v, want one that says %s", err, says)
		}
	}
}

// FuzzMQTT holds that nothing that a broker says panics, is read without end, or has
// no class; and that what is taken for an answer is one to another project's codec.
func FuzzMQTT(f *testing.F) {
	f.Add(admitted, firstAck+back("pong"))
	f.Add(admitted, back("pong")+firstAck)
	f.Add(admitted, back("pong")+firstAck+firstAck)
	f.Add(connack+"\x90\x03\x00\x01\x80", "")
	f.Add("\x20\x02\x00\x05", "")
	f.Add(admitted, "\x32\xff\xff\xff\x7f"+firstTopic)
	f.Fuzz(func(t *testing.T, greeting, rest string) {
		m := &mqttLink{body: []byte("ping")}
		got, buf, err := conversation(t, m, greeting, rest)
		if err != nil {
			return
		}
		for theirs := strings.NewReader(rest); ; {
			packet, err := packets.ReadPacket(theirs)
			if err != nil {
				t.Fatalf("taken as an answer of %d bytes, but paho reads none in %q: %v", got.length, rest, err)
			}
			if p, ok := packet.(*packets.PublishPacket); ok {
				if !bytes.Equal(p.Payload, buf[:got.length]) || p.TopicName != m.topic || p.MessageID == 0 {
					t.Errorf("taken as %q, by paho as %v", buf[:got.length], p)
				}
				return
			}
		}
	})
}

// conversation has a protocol begin, by the greeting, and send one request, which the
// rest answers.
func conversation(t *testing.T, p protocol, greeting, rest string) (got answer, buf []byte, err error) {
	t.Helper()
	says := script{io.MultiReader(strings.NewReader(greeting), strings.NewReader(rest))}
	l := &link{routine: &routine{loop: &loop{watch: newStopWatch()}}, number: 1, protocol: p, conn: says, budget: answerOverhead}
	buf = make([]byte, 64)
	if err = p.begin(l); err == nil {
		got, err = l.exchange(buf)
	}
	if got.length < 0 || got.length >= len(buf) {
		t.Errorf("a body of %d bytes in a buffer of %d", got.length, len(buf))
	}
	if err == nil && (l.firstByte == 0 || l.lastByte < l.firstByte) {
		t.Errorf("taken as an answer from %d to %d", l.firstByte, l.lastByte)
	}
	if err != nil && class(err) == classOther {
		t.Errorf("error of no class: %v", err)
	}
	return got, buf, err
}
