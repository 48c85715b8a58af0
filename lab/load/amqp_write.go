package load

import "encoding/binary"

// Who a load is to a RabbitMQ as installed, and where.
const (
	amqpResponse = "\x00guest\x00guest" // SASL PLAIN
	amqpHost     = "/"
)

// appendFrame adds a frame.
func appendFrame(out []byte, kind byte, channel uint16, payload []byte) []byte {
	out = binary.BigEndian.AppendUint16(append(out, kind), channel)
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	return append(append(out, payload...), frameEnd)
}

// methodFrame is a method with its arguments.
func methodFrame(channel uint16, m method, args []byte) []byte {
	return appendFrame(nil, frameMethod, channel, append(binary.BigEndian.AppendUint32(nil, uint32(m)), args...))
}

// shortText adds a string of up to 255 bytes.
func shortText(out []byte, s string) []byte { return append(append(out, byte(len(s))), s...) }

// emptyTable adds a table without fields.
func emptyTable(out []byte) []byte { return append(out, 0, 0, 0, 0) }

// reserved adds the number that a method of the queue and basic classes begins with.
func reserved() []byte { return []byte{0, 0} }

func startOKFrame() []byte {
	args := shortText(emptyTable(nil), "PLAIN")
	args = append(binary.BigEndian.AppendUint32(args, uint32(len(amqpResponse))), amqpResponse...)
	return methodFrame(0, connectionStartOK, shortText(args, "en_US"))
}

// tuneOKFrame asks for one channel and no heartbeats.
func tuneOKFrame(frameMax int) []byte {
	args := binary.BigEndian.AppendUint16(nil, amqpChannel)
	args = binary.BigEndian.AppendUint32(args, uint32(frameMax))
	return methodFrame(0, connectionTuneOK, binary.BigEndian.AppendUint16(args, 0))
}

func openFrame() []byte {
	return methodFrame(0, connectionOpen, append(shortText(shortText(nil, amqpHost), ""), 0))
}

// declareFrame asks for a queue that the broker names and that ends with the connection.
func declareFrame() []byte {
	const exclusive, autoDelete = 1 << 2, 1 << 3
	return methodFrame(amqpChannel, queueDeclare, emptyTable(append(shortText(reserved(), ""), exclusive|autoDelete)))
}

// consumeFrame asks for messages that are not acknowledged.
func consumeFrame(queue string) []byte {
	const noAck = 1 << 1
	args := shortText(shortText(reserved(), queue), "") // the broker names the consumer
	return methodFrame(amqpChannel, basicConsume, emptyTable(append(args, noAck)))
}

// publishFrames are all of a message that goes before its body.
func publishFrames(queue string, length int) []byte {
	out := methodFrame(amqpChannel, basicPublish, append(shortText(shortText(reserved(), ""), queue), 0))
	head := binary.BigEndian.AppendUint16(nil, classBasic)
	head = append(head, 0, 0) // weight
	head = binary.BigEndian.AppendUint64(head, uint64(length))
	return appendFrame(out, frameContent, amqpChannel, append(head, 0, 0)) // no properties
}
