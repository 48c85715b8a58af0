package native

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

var asked = transport.Request{
	Target: transport.Target{Namespace: "default", Name: "web", Port: 80, Protocol: transport.TCP},
	Source: map[string]string{"label/app": "cart"}, Confirm: true,
	Client: transport.ClientOf(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}),
}

func frame(k kind, stream uint32, payload ...byte) []byte {
	b := make([]byte, headerBytes, headerBytes+len(payload))
	header{k, len(payload), stream}.put(b)
	return append(b, payload...)
}

func openFrame(t testing.TB, stream uint32, m transport.Request, first string) []byte {
	t.Helper()
	payload, err := appendOpen(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return frame(kindOpen, stream, append(payload, first...)...)
}

func TestOpenFrame(t *testing.T) {
	r := bytes.NewReader(openFrame(t, 7, asked, "GET /"))
	h, err := readHeader(r)
	if err != nil || h.kind != kindOpen || h.stream != 7 {
		t.Fatal(h, err)
	}
	m, first, err := readOpen(r, h.length)
	if err != nil || !reflect.DeepEqual(m, asked) {
		t.Errorf("got %+v, %v", m, err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "GET /" || first != len(rest) {
		t.Errorf("%d first bytes: %q", first, rest)
	}
	long := asked
	long.Source = map[string]string{"x": strings.Repeat("y", transport.RequestBytes)}
	if _, err := appendOpen(nil, long); err == nil {
		t.Error("a message over the bound is sent")
	}
}

// A peer that breaks the protocol is known by it, and its connection is over.
func TestMisbehaviour(t *testing.T) {
	good := openFrame(t, 1, asked, "x")
	for name, said := range map[string][]byte{
		"no kind":                      frame(0, 1),
		"a kind of the future":         frame(99, 0, 1, 2, 3),
		"1 GB":                         {byte(kindData), 0xff, 0xff, 0xff, 0, 0, 0, 1},
		"data of no stream":            frame(kindData, 0, 1),
		"nothing as data":              frame(kindData, 1),
		"padding of a stream":          frame(kindPad, 1, 1),
		"a long ping":                  frame(kindPing, 0, make([]byte, pingMax+1)...),
		"a reset without a code":       frame(kindReset, 1),
		"accepted with bytes":          frame(kindAccept, 1, 1),
		"accepted by who opened it":    frame(kindAccept, 1),
		"done with by who opened it":   frame(kindDone, 1),
		"an open frame too short":      frame(kindOpen, 1, 0),
		"a message past its frame":     frame(kindOpen, 1, 0, 9, 0xa0),
		"a message that is no CBOR":    frame(kindOpen, 1, 0, 1, 0xff),
		"a message of something else":  frame(kindOpen, 1, 0, 1, 0x01),
		"an unknown field":             frame(kindOpen, 1, 0, 3, 0xa1, 0x18, 0x63),
		"a client that is no text":     frame(kindOpen, 1, 0, 4, 0xa1, 0x04, 0x41, 0),
		"a client without a port":      frame(kindOpen, 1, 0, 10, 0xa1, 0x04, 0x67, '1', '.', '1', '.', '1', '.', '1'),
		"no client as one":             frame(kindOpen, 1, 0, 3, 0xa1, 0x04, 0x60),
		"an open frame twice":          append(bytes.Clone(good), good...),
		"a stream before the last one": append(append(openFrame(t, 5, asked, ""), frame(kindFIN, 5)...), openFrame(t, 4, asked, "")...),
	} {
		if err := served(t, said, backend(refusing)); !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ended := make(chan struct{})
	defer close(ended)
	two := append(openFrame(t, 1, asked, ""), openFrame(t, 2, asked, "")...)
	err := served(t, two, backend(func() error {
		<-ended
		return io.EOF
	}))
	if !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("a stream inside another: got %v", err)
	}
	for name, said := range map[string][]byte{
		"bytes of an unknown stream": frame(kindData, 9, 1, 2),
		"its end":                    frame(kindFIN, 9),
		"its reset":                  frame(kindReset, 9, 0, 0, 0, 1),
		"padding":                    frame(kindPad, 0, make([]byte, 1000)...),
		"a pong that nobody wants":   frame(kindPong, 0, 1),
		"a stream after another":     append(append(bytes.Clone(good), frame(kindFIN, 1)...), openFrame(t, 2, asked, "")...),
	} {
		if err := served(t, said, backend(refusing)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want the end of it", name, err)
		}
	}
}

// served is how a connection ends on which a peer says that, then no more, and hears on.
func served(t testing.TB, said []byte, b transport.Backend) error {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return NewServer(b, "", func(string) Peer { return Peer{Extra: new(Extra)} }).Serve(halfClosed{near, bytes.NewReader(said)}, identity.Name{})
}

// halfClosed is a connection whose peer has said all: it can be written to yet.
type halfClosed struct {
	net.Conn
	said *bytes.Reader
}

func (h halfClosed) Read(b []byte) (int, error) { return h.said.Read(b) }

// backend allows all and dials nothing.
type backend func() error

func (backend) Allow(identity.Name, transport.Request) error { return nil }

func (b backend) Dial(context.Context, identity.Name, transport.Request) (transport.Conn, error) {
	return nil, b()
}

func refusing() error { return &transport.Refusal{Code: transport.NoService} }

// A stream is accepted once.
func TestAcceptedTwice(t *testing.T) {
	near, far := net.Pipe()
	c := newConnection(near, newBuffers())
	if _, err := c.begin(nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = far.Write(append(frame(kindAccept, 1), frame(kindAccept, 1)...))
		_ = far.Close()
	}()
	if err := c.serve(); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

// A stream that is opened when the connection has just ended is none.
func TestOpenedAfterEnd(t *testing.T) {
	near, _ := net.Pipe()
	c := newConnection(near, newBuffers())
	c.open = func(*connection, *stream, transport.Request) { t.Error("it was opened") }
	c.end(io.ErrUnexpectedEOF)
	if _, _, err := c.accept(1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// A ping comes back as it was, and before anything else is said: who is called learns the
// path once who calls knows it.
func TestPing(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		_ = NewServer(nil, "", func(string) Peer { return Peer{Extra: new(Extra)} }).Serve(near, identity.Name{})
	}()
	defer far.Close()
	_ = far.SetDeadline(time.Now().Add(20 * time.Second))
	for _, turn := range []struct{ say, hear []byte }{
		{frame(kindPing, 0, []byte("now")...), frame(kindPong, 0, []byte("now")...)},
		{frame(kindPad, 0, 1, 2, 3), nil},
		{frame(kindPad, 0), frame(kindPad, 0)},
	} {
		if _, err := far.Write(turn.say); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(turn.hear))
		if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, turn.hear) {
			t.Errorf("%q to %q, %v", got, turn.say, err)
		}
	}
}

// Nothing that a peer says does more than end its connection.
func FuzzServe(f *testing.F) {
	f.Add(openFrame(f, 1, asked, "x"))
	f.Add(frame(kindPad, 0, 1, 2, 3))
	f.Add(frame(kindLoss, 0, 0, 0, 1, 0, 0, 0, 0, 2))
	f.Add(append(openFrame(f, 1, asked, "x"), frame(kindFIN, 1)...))
	f.Fuzz(func(t *testing.T, said []byte) { _ = served(t, said, backend(refusing)) })
}

// A header that is taken is within the bounds, and written as it was read.
func FuzzHeader(f *testing.F) {
	f.Add(frame(kindData, 1, 1)[:headerBytes])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < headerBytes {
			return
		}
		b := [headerBytes]byte(data)
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		var again [headerBytes]byte
		h.put(again[:])
		if again != b || h.length > payloadMax || binary.BigEndian.Uint32(b[4:]) != h.stream {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}

// What is wanted of an offered connection is a protocol that there is, or an error.
func FuzzWanted(f *testing.F) {
	for _, name := range []string{Protocol, ProtocolShared, ProtocolLane, ProtocolReverse, ""} {
		f.Add(append([]byte{byte(len(name))}, name...))
	}
	f.Add([]byte{200, 'x'})
	f.Fuzz(func(t *testing.T, said []byte) {
		name, err := wanted(bytes.NewReader(said))
		if (err == nil) != slices.Contains([]string{Protocol, ProtocolShared, ProtocolLane}, name) {
			t.Errorf("%q, %v", name, err)
		}
	})
}
