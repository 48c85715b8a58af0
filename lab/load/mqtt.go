package load

// A message over MQTT: PUBLISH → broker → PUBLISH. The thread is its own
// subscriber, on the connection that it publishes on, so the way there and back is
// one round trip. The two acknowledgements of QoS 1 lie beside that way: the broker
// sends its own with the message, before or after it, and ours is sent once both
// are in. So neither is in the response time, and a message that is never
// acknowledged is an error all the same.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// First bytes of packets of MQTT 3.1.1: the type, and the flags that it has here.
const (
	mqttConnect   = 0x10
	mqttConnack   = 0x20
	mqttPublish   = 0x32 // at QoS 1
	mqttPuback    = 0x40
	mqttSubscribe = 0x82
	mqttSuback    = 0x90
)

const (
	mqttQoS = 1
	// mqttSubscription is the packet identifier of the only SUBSCRIBE.
	mqttSubscription = 1
	// mqttSizeMax is how many bytes a packet's length may have.
	mqttSizeMax = 4
)

// mqttLink speaks MQTT 3.1.1 to a broker, at QoS 1 in both directions: on each
// connection it subscribes to a topic of its own and publishes there.
type mqttLink struct {
	body   []byte
	reader *bufio.Reader
	topic  string
	// id is the packet identifier of the current message.
	id uint16
	// out is what is yet to be written.
	out []byte
}

// begin connects, without a session that outlives the connection and without
// keep-alive packets, which the experiment did not ask for, and subscribes: as
// clients do, each after the answer to the one before.
func (m *mqttLink) begin(l *link) error {
	if m.reader == nil {
		m.reader = bufio.NewReaderSize(l, readChunk)
	}
	m.reader.Reset(l)
	m.id = 0
	m.topic = fmt.Sprintf("skerry/%d/%d", l.routine.number, l.number)

	const cleanSession, keepAlive = 0x02, 0
	connect := mqttText(nil, "MQTT")
	connect = append(connect, 4, cleanSession, 0, keepAlive) // 4 is version 3.1.1
	connect = mqttText(connect, "")                          // the broker names the client
	var connack [2]byte
	if err := m.ask(l, mqttConnect, connect, mqttConnack, connack[:]); err != nil {
		return err
	}
	if connack[1] != 0 {
		return errDenied
	}
	subscribe := append(mqttText([]byte{0, mqttSubscription}, m.topic), mqttQoS)
	var suback [3]byte
	if err := m.ask(l, mqttSubscribe, subscribe, mqttSuback, suback[:]); err != nil {
		return err
	}
	switch {
	case binary.BigEndian.Uint16(suback[:]) != mqttSubscription:
		return errMalformed
	case suback[2] != mqttQoS:
		return errDenied
	}
	return nil
}

// ask sends a packet and reads the one that answers it.
func (m *mqttLink) ask(l *link, kind byte, rest []byte, want byte, into []byte) error {
	m.out = append(mqttHead(m.out[:0], kind, len(rest)), rest...)
	if err := m.flush(l); err != nil {
		return err
	}
	got, size, err := m.next(l)
	switch {
	case err != nil:
		return err
	case got != want || size != len(into):
		return errMalformed
	}
	return m.read(into, errShortHead)
}

func (m *mqttLink) flush(l *link) error {
	_, err := l.conn.Write(m.out)
	m.out = m.out[:0]
	return err
}

// exchange publishes, and waits for the message and for its acknowledgement.
func (m *mqttLink) exchange(l *link, buf []byte) (answer, error) {
	if m.reader.Buffered() > 0 { // what is there before the question is no answer
		return answer{}, errTrailing
	}
	m.id = m.id%math.MaxUint16 + 1 // 0 is no identifier
	e := &mqttMessage{mqttLink: m, link: l, buf: buf}
	err := e.publish()
	for err == nil && !(e.acknowledged && e.delivered) {
		err = e.receive()
	}
	l.firstByte, l.lastByte = e.firstByte, e.lastByte
	if err == nil && m.reader.Buffered() > 0 {
		err = errTrailing
	}
	if err != nil {
		return e.answer, err
	}
	// An answer is an answer even if the connection breaks now: the next request
	// finds out.
	m.out = binary.BigEndian.AppendUint16(mqttHead(m.out[:0], mqttPuback, 2), e.theirs)
	e.answer.last = m.flush(l) != nil
	return e.answer, nil
}

// mqttMessage is one message on its way.
type mqttMessage struct {
	*mqttLink
	link   *link
	buf    []byte
	answer answer
	// theirs is the packet identifier of what came back.
	theirs                  uint16
	acknowledged, delivered bool
	// firstByte and lastByte of what came back.
	firstByte, lastByte int64
}

// publish sends the message, by one write unless it is a large one.
func (e *mqttMessage) publish() error {
	size := 2 + len(e.topic) + 2 + len(e.body)
	e.out = mqttText(mqttHead(e.out[:0], mqttPublish, size), e.topic)
	e.out = binary.BigEndian.AppendUint16(e.out, e.id)
	for rest := e.body; ; {
		n := min(len(rest), writeMax)
		e.out = append(e.out, rest[:n]...)
		if err := e.flush(e.link); err != nil || n == len(rest) {
			return err
		}
		rest = rest[n:]
	}
}

// receive takes one packet.
func (e *mqttMessage) receive() error {
	kind, size, err := e.next(e.link)
	switch {
	case err != nil:
		return err
	case kind == mqttPuback && size == 2 && !e.acknowledged:
		e.acknowledged = true
		id, err := e.short()
		if err == nil && id != e.id {
			return errMalformed
		}
		return err
	case kind == mqttPublish && !e.delivered:
		e.delivered = true
		return e.deliver(size)
	}
	return errMalformed
}

// deliver takes a message of that size, its topic and identifier included.
func (e *mqttMessage) deliver(size int) error {
	e.firstByte = e.link.firstByte
	length, err := e.short()
	if err != nil {
		return err
	}
	body := size - 2 - int(length) - 2
	if int(length) != len(e.topic) || body < 0 {
		return errMalformed
	}
	// The topic passes through the answer's buffer, which holds the longest.
	topic := e.buf[:length]
	if err := e.read(topic, errShortHead); err != nil {
		return err
	}
	if string(topic) != e.topic {
		return errMalformed
	}
	if e.theirs, err = e.short(); err != nil {
		return err
	}
	switch {
	case e.theirs == 0: // no identifier
		return errMalformed
	case body >= len(e.buf):
		return errTooLong
	}
	e.answer.length = body
	if err := e.read(e.buf[:body], errShortBody); err != nil {
		return err
	}
	e.lastByte = e.link.lastByte
	return nil
}

// next reads the fixed header of a packet, and how many bytes follow.
func (m *mqttLink) next(l *link) (kind byte, size int, err error) {
	l.starts(m.reader)
	if kind, err = m.reader.ReadByte(); err != nil {
		return 0, 0, cutShort(err, errNoAnswer)
	}
	for i := range mqttSizeMax {
		b, err := m.reader.ReadByte()
		if err != nil {
			return 0, 0, cutShort(err, errShortHead)
		}
		const more, bits = 0x80, 7
		size |= int(b&^more) << (bits * i)
		if b < more {
			return kind, size, nil
		}
	}
	return 0, 0, errMalformed
}

func (m *mqttLink) short() (uint16, error) {
	var b [2]byte
	err := m.read(b[:], errShortHead)
	return binary.BigEndian.Uint16(b[:]), err
}

// read fills into; what is missing at the end of the connection is the error.
func (m *mqttLink) read(into []byte, missing error) error {
	_, err := io.ReadFull(m.reader, into)
	return cutShort(err, missing)
}

// cutShort names the end of a connection by what it left out; other errors stay.
func cutShort(err, missing error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return missing
	}
	return err
}

// mqttHead adds the fixed header of a packet with that many bytes behind it.
func mqttHead(out []byte, kind byte, size int) []byte {
	return binary.AppendUvarint(append(out, kind), uint64(size))
}

// mqttText adds a string.
func mqttText(out []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(out, uint16(len(s))), s...)
}
