package load

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// windowMax is the most that flow control can allow (RFC 9113 §6.9.1): what
	// the load grants, so that a body is never held up on its account.
	windowMax = math.MaxInt32
	// windowDefault is what both sides allow at first.
	windowDefault = 65535
	// frameMax is the payload of a frame that every peer takes (§4.2).
	frameMax = 16 << 10
	// writeMax is how much is gathered before it is written.
	writeMax = 256 << 10
	// controlMax bounds the frames beside the answer during one request, but for those by
	// which the peer takes its body: they grow with it, and link.budget bounds them.
	controlMax = 1000
	// windowUpdates is how many bytes of windows may come for each byte of a body: the
	// connection's and the stream's, of 13 bytes, for each KiB.
	windowUpdates = 2 * 13 / 1024.
)

// http2Link speaks HTTP/2 without TLS, by prior knowledge (RFC 9113 §3.3), one
// stream at a time. The library decodes; what is sent is written out here, so
// that a request is one write.
type http2Link struct {
	message Message
	// fields is the request's header block. It leaves the dynamic table alone, so
	// that every request has the same size.
	fields []byte

	reader *bufio.Reader
	framer *http2.Framer
	// out is what is yet to be written.
	out []byte
	// stream is the current one's number, next that of the one after: odd, from 1.
	stream, next uint32
	// window is what the peer allows of the connection, streamWindow of the
	// current stream, initialWindow of each, in bytes; the last two may be below 0.
	window, streamWindow, initialWindow int64
	// taken of the window that was granted to the peer, not yet granted again.
	taken uint32
	// goingAway means that the peer takes no further stream.
	goingAway bool
	controls  int
}

// formatHTTP2 is the header block of a request.
func formatHTTP2(target string, m Message) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: m.Method}, {Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: target}, {Name: ":path", Value: m.Path},
		{Name: "user-agent", Value: userAgent},
	}
	if m.Method == http.MethodPost {
		fields = append(fields, hpack.HeaderField{Name: "content-type", Value: ContentType},
			hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(m.Body))})
	}
	for _, f := range fields {
		_ = e.WriteField(f) // a buffer takes everything
	}
	return b.Bytes()
}

// begin leaves the preface, the settings and the connection's window to be
// written with the first request: prior knowledge need not wait for an answer.
func (h *http2Link) begin(l *link) error {
	if h.reader == nil {
		h.reader = bufio.NewReaderSize(l, readChunk)
	}
	h.reader.Reset(l)
	h.framer = http2.NewFramer(io.Discard, h.reader)
	h.framer.SetReuseFrames()
	h.framer.SetMaxReadFrameSize(frameMax)
	h.framer.MaxHeaderListSize = answerOverhead
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.next, h.goingAway, h.taken = 1, false, 0
	h.window, h.initialWindow = windowDefault, windowDefault

	settings := binary.BigEndian.AppendUint16(nil, uint16(http2.SettingEnablePush))
	settings = binary.BigEndian.AppendUint32(settings, 0)
	settings = binary.BigEndian.AppendUint16(settings, uint16(http2.SettingInitialWindowSize))
	settings = binary.BigEndian.AppendUint32(settings, windowMax)
	h.out = append(h.out[:0], http2.ClientPreface...)
	h.frame(http2.FrameSettings, 0, 0, settings)
	h.grant(windowMax - windowDefault)
	return nil
}

// frame adds a frame to what is to be written.
func (h *http2Link) frame(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	n := len(payload)
	h.out = append(h.out, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	h.out = binary.BigEndian.AppendUint32(h.out, stream)
	h.out = append(h.out, payload...)
}

// grant allows the peer that many bytes more on the connection.
func (h *http2Link) grant(n uint32) {
	h.frame(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, n))
}

func (h *http2Link) flush(l *link) error {
	_, err := l.conn.Write(h.out)
	h.out = h.out[:0]
	return err
}

// exchange does a request on a stream of its own. Before all is written it reads
// only where flow control holds it up.
func (h *http2Link) exchange(l *link, buf []byte) (answer, error) {
	h.stream, h.next = h.next, h.next+2
	h.streamWindow, h.controls = h.initialWindow, 0
	l.budget += int(windowUpdates * float64(len(h.message.Body)))
	e := &http2Request{http2Link: h, link: l, buf: buf}
	err := e.send()
	for err == nil && !e.done {
		err = e.receive()
	}
	if e.answer.status == 0 {
		l.firstByte = 0 // it was not this answer's
	}
	if err != nil {
		return e.answer, err
	}
	e.answer.last = h.goingAway || len(e.unsent) > 0
	if h.taken >= windowMax/2 {
		h.grant(h.taken)
		h.taken = 0
	}
	// What is left are acknowledgements. An answer is an answer even if the
	// connection breaks now: the next request finds out.
	if len(h.out) > 0 && h.flush(l) != nil {
		e.answer.last = true
	}
	return e.answer, nil
}

// http2Request is one request on its stream.
type http2Request struct {
	*http2Link
	link   *link
	buf    []byte
	unsent []byte
	answer answer
	// done means that the answer is whole.
	done bool
}

func (e *http2Request) send() error {
	e.unsent = e.message.Body
	flags := http2.FlagHeadersEndHeaders
	if len(e.unsent) == 0 {
		flags |= http2.FlagHeadersEndStream
	}
	e.frame(http2.FrameHeaders, flags, e.stream, e.fields)
	for len(e.unsent) > 0 && !e.done {
		n := min(int64(len(e.unsent)), e.window, e.streamWindow, frameMax)
		if n <= 0 || len(e.out) >= writeMax {
			if err := e.flush(e.link); err != nil {
				return err
			}
		}
		if n <= 0 {
			if err := e.receive(); err != nil {
				return err
			}
			continue
		}
		part := e.unsent[:n]
		e.unsent = e.unsent[n:]
		e.window, e.streamWindow = e.window-n, e.streamWindow-n
		flags := http2.Flags(0)
		if len(e.unsent) == 0 {
			flags = http2.FlagDataEndStream
		}
		e.frame(http2.FrameData, flags, e.stream, part)
	}
	return e.flush(e.link)
}

// receive takes one frame.
func (e *http2Request) receive() error {
	frame, err := e.framer.ReadFrame()
	if err != nil {
		return e.frameError(err)
	}
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		return e.headers(f)
	case *http2.DataFrame:
		return e.data(f)
	case *http2.WindowUpdateFrame:
		return e.opened(f)
	}
	if e.controls++; e.controls > controlMax {
		return fmt.Errorf("%w: %d frames beside the answer", errMalformed, controlMax)
	}
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		return e.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			e.frame(http2.FramePing, http2.FlagPingAck, 0, f.Data[:])
		}
	case *http2.RSTStreamFrame:
		if f.StreamID == e.stream {
			return fmt.Errorf("%w: %s", errRefused, f.ErrCode)
		}
	case *http2.GoAwayFrame:
		e.goingAway = true
		if f.LastStreamID < e.stream {
			return fmt.Errorf("%w: %s", errNoAnswer, f.ErrCode)
		}
	case *http2.PushPromiseFrame:
		return errMalformed // the settings rule it out
	}
	// Frames of unknown kinds are ignored (RFC 9113 §4.1).
	return nil
}

// frameError names what broke a frame or ended the connection.
func (e *http2Request) frameError(err error) error {
	switch {
	case ofSocket(err):
		return err
	case !e.link.ended:
		return fmt.Errorf("%w: %w", errMalformed, err)
	case e.answer.status != 0:
		return errShortBody
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errShortHead
	}
	return errNoAnswer
}

func (e *http2Request) headers(f *http2.MetaHeadersFrame) error {
	if f.StreamID != e.stream || f.Truncated {
		return errMalformed
	}
	if e.answer.status != 0 { // trailers
		if !f.StreamEnded() {
			return errMalformed
		}
		e.done = true
		return nil
	}
	status, ok := digits([]byte(f.PseudoValue("status")), 3)
	switch {
	case !ok || status < 100 || status < 200 && f.StreamEnded():
		return errMalformed
	case status < 200:
		if e.controls++; e.controls > interimMax {
			return errMalformed
		}
		return nil
	}
	// The bytes before were settings, not this answer's.
	e.link.firstByte = e.link.lastByte
	e.answer.status, e.done = status, f.StreamEnded()
	return nil
}

func (e *http2Request) data(f *http2.DataFrame) error {
	if f.StreamID != e.stream || e.answer.status == 0 {
		return errMalformed
	}
	e.taken += f.Length
	n := copy(e.buf[e.answer.length:], f.Data())
	e.answer.length += n
	if n < len(f.Data()) || e.answer.length == len(e.buf) {
		return errTooLong
	}
	e.done = f.StreamEnded()
	return nil
}

func (e *http2Request) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		if s.ID == http2.SettingInitialWindowSize {
			e.streamWindow += int64(s.Val) - e.initialWindow
			e.initialWindow = int64(s.Val)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	e.frame(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	return nil
}

// opened takes more of a window; a stream that is over needs none.
func (e *http2Request) opened(f *http2.WindowUpdateFrame) error {
	switch f.StreamID {
	case 0:
		e.window += int64(f.Increment)
	case e.stream:
		e.streamWindow += int64(f.Increment)
	}
	if max(e.window, e.streamWindow) > windowMax {
		return errMalformed
	}
	return nil
}
