package load

// A message over AMQP 0-9-1: basic.publish → broker → basic.deliver. The thread is
// its own consumer, on the channel that it publishes on, so the way there and back
// is one round trip. Nothing is acknowledged: the consumer asked for none (no-ack),
// nor does the publisher ask for confirms.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Kinds of frames, and how each ends.
const (
	frameMethod    = 1
	frameContent   = 2 // the header of a message
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xce
)

// method is a class and a method of it.
type method uint32

const (
	connectionStart   method = 10<<16 | 10
	connectionStartOK method = 10<<16 | 11
	connectionTune    method = 10<<16 | 30
	connectionTuneOK  method = 10<<16 | 31
	connectionOpen    method = 10<<16 | 40
	connectionOpenOK  method = 10<<16 | 41
	connectionClose   method = 10<<16 | 50
	channelOpen       method = 20<<16 | 10
	channelOpenOK     method = 20<<16 | 11
	channelClose      method = 20<<16 | 40
	queueDeclare      method = 50<<16 | 10
	queueDeclareOK    method = 50<<16 | 11
	basicConsume      method = 60<<16 | 20
	basicConsumeOK    method = 60<<16 | 21
	basicPublish      method = 60<<16 | 40
	basicDeliver      method = 60<<16 | 60
)

const (
	classBasic = 60
	// amqpChannel is the only channel beside that of the connection.
	amqpChannel = 1
	// frameOverhead is what a frame has beside its payload.
	frameHead, frameOverhead = 7, 8
	// frameLeast is the least that a peer may bound frames to, and frameMost what we
	// bound them to: RabbitMQ's own bound.
	frameLeast, frameMost = 4 << 10, 128 << 10
	// methodMax bounds a method and a message's header.
	methodMax = 4 << 10
)

// amqpLink speaks AMQP 0-9-1 to a broker: on each connection it consumes from a
// queue of its own, which ends with the connection, and publishes to that by the
// default exchange. Messages are transient and have no properties.
type amqpLink struct {
	body   []byte
	reader *bufio.Reader
	// queue's name, as the broker chose it.
	queue string
	// head is what goes before the body of each message.
	head []byte
	// frameMax bounds frames, the broker's too.
	frameMax int
	// out is what is yet to be written, scratch what was read last.
	out     []byte
	scratch [methodMax + 1]byte
}

// begin opens the connection, without heartbeats, which the experiment did not ask
// for, and a channel, declares the queue and consumes from it: as clients do, each
// after the answer to the one before.
func (a *amqpLink) begin(l *link) error {
	if a.reader == nil {
		a.reader = bufio.NewReaderSize(l, readChunk)
	}
	a.reader.Reset(l)
	a.frameMax = frameMost
	if _, err := a.ask(l, []byte("AMQP\x00\x00\x09\x01"), connectionStart); err != nil {
		return err
	}
	tune, err := a.ask(l, startOKFrame(), connectionTune)
	if err != nil {
		return err
	}
	// Of channels and heartbeats we ask for less than is offered.
	_, most, _ := tune.short(), tune.long(), tune.short()
	if most > 0 && most < frameMost { // 0 is no bound
		a.frameMax = int(most)
	}
	if tune.bad || a.frameMax < frameLeast {
		return errMalformed
	}
	if _, err := a.ask(l, append(tuneOKFrame(a.frameMax), openFrame()...), connectionOpenOK); err != nil {
		return err
	}
	if _, err := a.ask(l, methodFrame(amqpChannel, channelOpen, []byte{0}), channelOpenOK); err != nil {
		return err
	}
	declared, err := a.ask(l, declareFrame(), queueDeclareOK)
	if err != nil {
		return err
	}
	if a.queue = declared.text(); declared.bad || a.queue == "" {
		return errMalformed
	}
	if _, err := a.ask(l, consumeFrame(a.queue), basicConsumeOK); err != nil {
		return err
	}
	a.head = publishFrames(a.queue, len(a.body))
	return nil
}

// ask sends frames and reads the method that answers them.
func (a *amqpLink) ask(l *link, frames []byte, want method) (arguments, error) {
	if _, err := l.conn.Write(frames); err != nil {
		return arguments{}, err
	}
	return a.await(l, want)
}

// exchange publishes a message and waits until it is back.
func (a *amqpLink) exchange(l *link, buf []byte) (answer, error) {
	if a.reader.Buffered() > 0 { // what is there before the question is no answer
		return answer{}, errTrailing
	}
	if err := a.publish(l); err != nil {
		return answer{}, err
	}
	deliver, err := a.await(l, basicDeliver)
	if err != nil {
		l.firstByte = 0 // it was not this answer's
		return answer{}, err
	}
	first := l.firstByte
	if !deliver.fromQueue(a.queue) {
		return answer{}, errMalformed
	}
	got, err := a.receive(l, buf)
	l.firstByte = first
	if err == nil && a.reader.Buffered() > 0 {
		err = errTrailing
	}
	return got, err
}

// publish sends the message, by one write unless it is a large one.
func (a *amqpLink) publish(l *link) error {
	a.out = append(a.out[:0], a.head...)
	for rest := a.body; ; {
		n := min(len(rest), a.frameMax-frameOverhead)
		a.out = appendFrame(a.out, frameBody, amqpChannel, rest[:n])
		rest = rest[n:]
		if len(rest) > 0 && len(a.out) < writeMax {
			continue
		}
		if _, err := l.conn.Write(a.out); err != nil || len(rest) == 0 {
			return err
		}
		a.out = a.out[:0]
	}
}

// receive takes what follows a deliver: the header and the body.
func (a *amqpLink) receive(l *link, buf []byte) (answer, error) {
	size, err := a.next(l, frameContent)
	if err != nil {
		return answer{}, betweenFrames(err)
	}
	head, err := a.payload(size)
	if err != nil {
		return answer{}, err
	}
	kind, weight, length := head.short(), head.short(), head.longLong()
	if head.bad || kind != classBasic || weight != 0 {
		return answer{}, errMalformed
	}
	if length >= uint64(len(buf)) {
		return answer{}, errTooLong
	}
	var got answer
	for rest := buf[:length]; len(rest) > 0; {
		n, err := a.next(l, frameBody)
		switch {
		case err != nil:
			return got, betweenFrames(err)
		case n == 0 || n > len(rest):
			return got, errMalformed
		}
		if err := a.read(rest[:n]); err != nil {
			return got, err
		}
		got.length, rest = got.length+n, rest[n:]
	}
	return got, nil
}

// betweenFrames names an end between two frames of one message.
func betweenFrames(err error) error {
	if errors.Is(err, errNoAnswer) {
		return errShortBody
	}
	return err
}

// await reads the next method, which must be the one that is wanted.
func (a *amqpLink) await(l *link, want method) (arguments, error) {
	size, err := a.next(l, frameMethod)
	if err != nil {
		return arguments{}, err
	}
	args, got, err := a.method(size)
	if err == nil && got != want {
		err = refusal(got)
	}
	return args, err
}

// refusal is what a method in place of another means.
func refusal(got method) error {
	if got == connectionClose || got == channelClose {
		return errDenied
	}
	return errMalformed
}

// next reads the head of the next frame, which must be of one kind, and gives its
// size. Heartbeats may come at any time.
func (a *amqpLink) next(l *link, want byte) (int, error) {
	for {
		l.starts(a.reader)
		head := a.scratch[:frameHead]
		if n, err := io.ReadFull(a.reader, head); n == 0 {
			return 0, cutShort(err, errNoAnswer)
		} else if err != nil {
			return 0, cutShort(err, errShortHead)
		}
		kind, size := head[0], int(binary.BigEndian.Uint32(head[3:]))
		switch {
		case size > a.frameMax-frameOverhead:
			return 0, errMalformed
		case kind == want:
			return size, nil
		case kind == frameMethod:
			_, got, err := a.method(size)
			if err == nil {
				err = refusal(got)
			}
			return 0, err
		case kind != frameHeartbeat || size > 0:
			return 0, errMalformed
		}
		if err := a.read(nil); err != nil {
			return 0, err
		}
	}
}

// method reads the payload of a method frame.
func (a *amqpLink) method(size int) (arguments, method, error) {
	args, err := a.payload(size)
	got := method(args.long())
	if err == nil && args.bad {
		err = errMalformed
	}
	return args, got, err
}

// payload reads that of a short frame; it lasts until the next one.
func (a *amqpLink) payload(size int) (arguments, error) {
	if size > methodMax {
		return arguments{}, errMalformed
	}
	err := a.read(a.scratch[:size])
	return arguments{rest: a.scratch[:size]}, err
}

// read fills into with the rest of a frame, and takes its end.
func (a *amqpLink) read(into []byte) error {
	if _, err := io.ReadFull(a.reader, into); err != nil {
		return cutShort(err, errShortBody)
	}
	end, err := a.reader.ReadByte()
	if err == nil && end != frameEnd {
		err = errMalformed
	}
	return cutShort(err, errShortBody)
}

// arguments are read off in order. Where there are too few they are bad, and what
// is read is zero.
type arguments struct {
	rest []byte
	bad  bool
}

func (a *arguments) take(n int) []byte {
	if n > len(a.rest) {
		a.rest, a.bad = nil, true
		return make([]byte, n)
	}
	taken := a.rest[:n]
	a.rest = a.rest[n:]
	return taken
}

func (a *arguments) short() uint16    { return binary.BigEndian.Uint16(a.take(2)) }
func (a *arguments) long() uint32     { return binary.BigEndian.Uint32(a.take(4)) }
func (a *arguments) longLong() uint64 { return binary.BigEndian.Uint64(a.take(8)) }
func (a *arguments) text() string     { return string(a.take(int(a.take(1)[0]))) }

// fromQueue reports the arguments of a deliver whose message was published to the
// queue of that name: it is the message's routing key.
func (a *arguments) fromQueue(queue string) bool {
	const redelivered = 1 // a byte
	_, _, _ = a.text(), a.longLong(), a.take(redelivered)
	exchange, key := a.text(), a.text()
	return !a.bad && exchange == "" && key == queue
}
