package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"skerry.dev/skerry/lab/workload/broker"
)

const (
	mirrorQueue = "amq.gen-0123456789012345678901" // as long as RabbitMQ's
	mirrorTag   = "amq.ctag-0123456789012345678901"
	// basicPrivate is a method that there is not.
	basicPrivate method = 60<<16 | 250
)

// mirrorAMQP is a broker of one queue and one consumer to a connection. That it
// speaks AMQP is shown by another project's client, which it serves as well.
type mirrorAMQP struct {
	// ends is asked before each message whether this was the last.
	ends func() bool
	mu   sync.Mutex
	// heard are the methods that clients called, with the last arguments of each.
	heard map[method][]byte
}

// mirrored is the connection of one client.
type mirrored struct {
	*mirrorAMQP
	conn net.Conn
	tag  string
}

func (m *mirrorAMQP) serve(conn net.Conn) {
	hello := make([]byte, 8)
	if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != "AMQP\x00\x00\x09\x01" {
		return
	}
	c := mirrored{m, conn, mirrorTag}
	c.call(0, connectionStart, startArgs())
	for {
		kind, body, err := readFrame(conn)
		if err != nil {
			return
		}
		if kind != frameMethod {
			continue // a heartbeat
		}
		got := method(binary.BigEndian.Uint32(body))
		m.hear(got, body[4:])
		if got == basicPublish && m.ends != nil && m.ends() {
			return
		}
		if err := c.answer(got, arguments{rest: body[4:]}); err != nil {
			return
		}
	}
}

func (m *mirrorAMQP) hear(got method, args []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard == nil {
		m.heard = map[method][]byte{}
	}
	m.heard[got] = args
}

func (c *mirrored) call(channel uint16, m method, args []byte) {
	_, _ = c.conn.Write(methodFrame(channel, m, args)) // who has gone needs no answer
}

func (c *mirrored) answer(got method, args arguments) error {
	const ok = 1
	switch got {
	case connectionStartOK:
		c.call(0, connectionTune, tuneArgs(0))
	case connectionOpen:
		c.call(0, connectionOpenOK, []byte{0})
	case channelOpen:
		c.call(amqpChannel, channelOpenOK, emptyTable(nil))
	case queueDeclare:
		c.call(amqpChannel, queueDeclareOK, declareArgs(mirrorQueue))
	case basicConsume:
		_, _, tag := args.short(), args.text(), args.text()
		if tag != "" {
			c.tag = tag
		}
		c.call(amqpChannel, basicConsumeOK, shortText(nil, c.tag))
	case basicPublish:
		_, exchange, key := args.short(), args.text(), args.text()
		return c.passOn(methodFrame(amqpChannel, basicDeliver, deliverArgs(c.tag, exchange, key)))
	case channelClose:
		c.call(amqpChannel, channelClose+ok, nil)
	case connectionClose:
		c.call(0, connectionClose+ok, nil)
	}
	return nil
}

// passOn takes a message to its end before it delivers any of it, as a broker does:
// who publishes a large one does not read meanwhile.
func (c *mirrored) passOn(message []byte) error {
	const classAndWeight = 4
	kind, head, err := readFrame(c.conn)
	if err != nil || kind != frameContent {
		return errors.Join(err, errMalformed)
	}
	message = appendFrame(message, frameContent, amqpChannel, head)
	for left := int64(binary.BigEndian.Uint64(head[classAndWeight:])); left > 0; {
		kind, body, err := readFrame(c.conn)
		if err != nil || kind != frameBody {
			return errors.Join(err, errMalformed)
		}
		message = appendFrame(message, frameBody, amqpChannel, body)
		left -= int64(len(body))
	}
	_, err = c.conn.Write(message)
	return err
}

func readFrame(r io.Reader) (kind byte, body []byte, err error) {
	head := make([]byte, frameHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	_, err = io.ReadFull(r, body)
	return head[0], body[:len(body)-1], err
}

// Arguments of a broker's methods.
func startArgs() []byte {
	args := emptyTable([]byte{0, 9})
	for _, text := range []string{"AMQPLAIN PLAIN", "en_US"} {
		args = append(binary.BigEndian.AppendUint32(args, uint32(len(text))), text...)
	}
	return args
}

func tuneArgs(frameMax uint32) []byte {
	args := binary.BigEndian.AppendUint32([]byte{0x07, 0xff}, frameMax)
	return append(args, 0, 60)
}

func declareArgs(queue string) []byte { return append(shortText(nil, queue), make([]byte, 8)...) }

func deliverArgs(tag, exchange, key string) []byte {
	args := append(shortText(nil, tag), 0, 0, 0, 0, 0, 0, 0, 1, 0)
	return shortText(shortText(args, exchange), key)
}

func contentHead(length uint64) []byte {
	head := binary.BigEndian.AppendUint64([]byte{0, classBasic, 0, 0}, length)
	return append(head, 0, 0)
}

// What the load says: PLAIN as guest, no heartbeats, a queue that ends with the
// connection, a consumer that acknowledges nothing, transient messages to the queue.
func TestAMQP(t *testing.T) {
	mirror := &mirrorAMQP{}
	served := make(chan struct{})
	rows := run(t, brokerSpec(broker.AMQP, startRaw(t, func(conn net.Conn) {
		defer close(served)
		mirror.serve(conn)
	}), 100, 3))
	ordered(t, rows)
	if got := errorsOf(rows); !slices.Equal(got, make([]string, 3)) {
		t.Fatalf("errors %q", got)
	}
	<-served
	for m, want := range map[method]string{
		connectionStartOK: "\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US",
		connectionTuneOK:  "\x00\x01\x00\x02\x00\x00\x00\x00",
		connectionOpen:    "\x01/\x00\x00",
		channelOpen:       "\x00",
		queueDeclare:      "\x00\x00\x00\x0c\x00\x00\x00\x00",
		basicConsume:      "\x00\x00\x1e" + mirrorQueue + "\x00\x02\x00\x00\x00\x00",
		basicPublish:      "\x00\x00\x00\x1e" + mirrorQueue + "\x00",
	} {
		if got := string(mirror.heard[m]); got != want {
			t.Errorf("method %d.%d: %q, want %q", m>>16, m&0xffff, got, want)
		}
	}
	if len(mirror.heard) != 7 {
		t.Errorf("%d methods were called, want 7", len(mirror.heard))
	}
	// What the prediction of a response time counts (lab/oracle).
	if there, back := len(publishFrames(mirrorQueue, 1)), len(methodFrame(1, basicDeliver, deliverArgs(mirrorTag, "", mirrorQueue)))+len(appendFrame(nil, frameContent, 1, contentHead(1))); there != 69 || back != 107 {
		t.Errorf("a message has %d bytes beside its body there and %d back, want 69 and 107", there, back)
	}
}

// The mirror is a broker to another project's client, too.
func TestMirrorIsAMQP(t *testing.T) {
	client, deliveries := amqpClient(t, startRaw(t, (&mirrorAMQP{}).serve))
	for _, body := range [][]byte{payload(1, 1), payload(300e3, 2)} {
		if got := passOn(t, client, deliveries, body); !bytes.Equal(got, body) {
			t.Errorf("%d bytes came back as %d", len(body), len(got))
		}
	}
}

// amqpClient is RabbitMQ's own client, as the load is one: queue and consumer alike.
func amqpClient(t testing.TB, target string) (*amqp091.Channel, <-chan amqp091.Delivery) {
	t.Helper()
	conn, err := amqp091.Dial("amqp://guest:guest@" + target + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.QueueDeclare("", false, true, true, false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := client.Consume("", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client, deliveries
}

// passOn sends a message to the queue of the mirror, or of who asks, and waits for it.
func passOn(t testing.TB, client *amqp091.Channel, deliveries <-chan amqp091.Delivery, body []byte) []byte {
	t.Helper()
	if err := client.PublishWithContext(t.Context(), "", mirrorQueue, false, false, amqp091.Publishing{Body: body}); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-deliveries:
		return d.Body
	case <-time.After(5 * time.Second):
		t.Fatal("nothing came back within 5 s")
		return nil
	}
}

// frames of a broker, one after the other.
func frames(all ...[]byte) string { return string(bytes.Join(all, nil)) }

// agreed is all that a broker says until a thread may publish.
func agreed() string {
	return frames(
		methodFrame(0, connectionStart, startArgs()), methodFrame(0, connectionTune, tuneArgs(0)), methodFrame(0, connectionOpenOK, []byte{0}),
		methodFrame(1, channelOpenOK, emptyTable(nil)), methodFrame(1, queueDeclareOK, declareArgs("q")), methodFrame(1, basicConsumeOK, shortText(nil, "c")),
	)
}

// returned is a message of that length, whose body follows.
func returned(key string, length uint64) string {
	return frames(methodFrame(1, basicDeliver, deliverArgs("c", "", key)), appendFrame(nil, frameContent, 1, contentHead(length)))
}

// Whatever a broker says, a request ends with a class.
func TestAMQPErrorClasses(t *testing.T) {
	t.Parallel() // it waits for timeouts
	body := payload(4, 0)
	whole := string(appendFrame(nil, frameBody, 1, body))
	start := string(methodFrame(0, connectionStart, startArgs()))
	closing := string(methodFrame(0, connectionClose, append(shortText([]byte{1, 64}, "CONNECTION_FORCED"), 0, 0, 0, 0)))
	heartbeat := string(appendFrame(nil, frameHeartbeat, 0, nil))
	for _, c := range []struct {
		name, greeting, rest string
		stays                bool
		want                 string
	}{
		{"nothing", "", "", false, "dial " + classClosed},
		{"silence", "", "", true, "dial " + classTimeout},
		{"another version", "AMQP\x00\x01\x00\x00", "", false, "dial " + classMalformed},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", "", false, "dial " + classMalformed},
		{"half a head", start[:4], "", false, "dial " + classShortHead},
		{"half a method", start[:20], "", false, "dial " + classShortBody},
		{"no end of a frame", start[:len(start)-1] + "!", "", false, "dial " + classMalformed},
		{"a method of 4 GB", "\x01\x00\x00\xff\xff\xff\xff", "", true, "dial " + classMalformed},
		{"a method of 100 KB", "\x01\x00\x00\x00\x01\x80\x00", "", true, "dial " + classMalformed},
		{"a method without its number", string(appendFrame(nil, frameMethod, 0, []byte{0, 10})), "", false, "dial " + classMalformed},
		{"closed before it is open", start + closing, "", false, "dial " + classDenied},
		{"another method", start + start, "", false, "dial " + classMalformed},
		{"frames of no size", start + string(methodFrame(0, connectionTune, tuneArgs(7))), "", false, "dial " + classMalformed},
		{"a tune cut short", start + string(methodFrame(0, connectionTune, tuneArgs(0)[:5])), "", false, "dial " + classMalformed},
		{"a queue without a name", strings.Replace(agreed(), string(methodFrame(1, queueDeclareOK, declareArgs("q"))), string(methodFrame(1, queueDeclareOK, declareArgs(""))), 1), "", false, "dial " + classMalformed},
		{"no message", agreed(), "", false, classClosed},
		{"no message for long", agreed(), heartbeat, true, classTimeout},
		{"an answer before the question", agreed() + returned("q", 4) + whole, "", false, classTrailing},
		{"a method that there is not", agreed(), string(methodFrame(1, basicPrivate, nil)), false, classMalformed},
		{"closed", agreed(), closing, false, classDenied},
		{"closed within a message", agreed(), returned("q", 4) + closing, false, classDenied},
		{"a message for another", agreed(), returned("p", 4) + whole, false, classMalformed},
		{"a deliver cut short", agreed(), string(methodFrame(1, basicDeliver, []byte("\x01c"))), false, classMalformed},
		{"no header", agreed(), string(methodFrame(1, basicDeliver, deliverArgs("c", "", "q"))) + whole, false, classMalformed},
		{"a header cut short", agreed(), string(methodFrame(1, basicDeliver, deliverArgs("c", "", "q"))) + string(appendFrame(nil, frameContent, 1, contentHead(4)[:9])), false, classMalformed},
		{"a body that does not come", agreed(), returned("q", 4), false, classShortBody},
		{"half a body", agreed(), returned("q", 4) + whole[:9], false, classShortBody},
		{"a body without end", agreed(), returned("q", 1<<40), true, classLongBody},
		{"a body of 2^64 bytes", agreed(), returned("q", 1<<64-1), true, classLongBody},
		{"an empty frame of a body", agreed(), returned("q", 4) + string(appendFrame(nil, frameBody, 1, nil)), false, classMalformed},
		{"more than its header says", agreed(), returned("q", 3) + whole, false, classMalformed},
		{"a shorter body", agreed(), returned("q", 3) + string(appendFrame(nil, frameBody, 1, body[:3])), false, classShortBody},
		{"a longer body", agreed(), returned("q", 5) + string(appendFrame(nil, frameBody, 1, []byte("12345"))), false, classLongBody},
		{"another body", agreed(), returned("q", 4) + string(appendFrame(nil, frameBody, 1, []byte("else"))), false, classWrongBody},
		{"a message too many", agreed(), returned("q", 4) + whole + returned("q", 4), false, classTrailing},
	} {
		wantClass(t, c.name, brokerSpec(broker.AMQP, hostile(t, c.greeting, c.rest, c.stays), 4, 1), c.want)
	}
}

// Heartbeats without end are bounded; of MQTT there is nothing that a broker may say
// twice.
func TestEndlessHeartbeats(t *testing.T) {
	heartbeats := endless{string(appendFrame(nil, frameHeartbeat, 0, nil))}
	l := &link{routine: &routine{loop: &loop{watch: newStopWatch()}}, conn: script{heartbeats}, budget: answerOverhead}
	if err := new(amqpLink).begin(l); class(err) != classLongBody || l.budget < -readChunk {
		t.Errorf("%v with a budget of %d", err, l.budget)
	}
}

// A broker that bounds frames gets none that is longer.
func TestFrameBound(t *testing.T) {
	a := &amqpLink{body: payload(10e3, 1)}
	text := strings.Replace(agreed(), string(tuneArgs(0)), string(tuneArgs(frameLeast)), 1)
	l := &link{routine: &routine{loop: &loop{watch: newStopWatch()}}, number: 1, protocol: a, budget: answerOverhead}
	var sent bytes.Buffer
	l.conn = taker{script{strings.NewReader(text)}, &sent}
	if err := a.begin(l); err != nil {
		t.Fatal(err)
	}
	sent.Reset()
	if err := a.publish(l); err != nil {
		t.Fatal(err)
	}
	var body []byte
	var sizes []int
	for {
		kind, part, err := readFrame(&sent)
		if err != nil {
			break
		}
		if kind == frameBody {
			body, sizes = append(body, part...), append(sizes, len(part)+frameOverhead)
		}
	}
	if !bytes.Equal(body, a.body) || !slices.Equal(sizes, []int{4096, 4096, 1832}) {
		t.Errorf("%d bytes in frames of %v", len(body), sizes)
	}
}

// taker is a script that keeps what it is told.
type taker struct {
	script
	told io.Writer
}

func (t taker) Write(p []byte) (int, error) { return t.told.Write(p) }

// FuzzAMQP holds that nothing that a broker says panics, is read without end, or has
// no class; and that what is taken for an answer is the body of frames in it.
func FuzzAMQP(f *testing.F) {
	whole := string(appendFrame(nil, frameBody, 1, []byte("pong")))
	heartbeat := string(appendFrame(nil, frameHeartbeat, 0, nil))
	f.Add(agreed(), returned("q", 4)+whole)
	f.Add(heartbeat+agreed(), heartbeat+returned("q", 4)+heartbeat+whole)
	f.Add(agreed(), returned("q", 8)+whole+whole)
	f.Add(agreed(), string(methodFrame(1, channelClose, []byte{0, 0})))
	f.Add("AMQP\x00\x00\x09\x01", "")
	f.Fuzz(func(t *testing.T, greeting, rest string) {
		got, buf, err := conversation(t, &amqpLink{body: []byte("ping")}, greeting, rest)
		if err != nil {
			return
		}
		var body []byte
		for rest := strings.NewReader(rest); ; {
			kind, part, err := readFrame(rest)
			if err != nil {
				break
			}
			if kind == frameBody {
				body = append(body, part...)
			}
		}
		if !bytes.Equal(body, buf[:got.length]) {
			t.Errorf("taken as %q, in frames %q", buf[:got.length], body)
		}
	})
}
