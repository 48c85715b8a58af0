package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
)

// peer is the other end of a connection of HTTP/2, by hand.
type peer struct {
	*http2.Framer
	conn io.Writer
}

// fields encodes a header block without the dynamic table.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

func (p peer) head(stream uint32, status string, end bool) error {
	return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields(":status", status), EndHeaders: true, EndStream: end})
}

// data is the next frame of a request's body.
func (p peer) data() (*http2.DataFrame, error) {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return nil, err
		}
		if data, ok := f.(*http2.DataFrame); ok {
			return data, nil
		}
	}
}

// say answers a stream with a status and a body.
func (p peer) say(stream uint32, status, body string) error {
	return errors.Join(p.head(stream, status, false), p.WriteData(stream, true, []byte(body)))
}

// requests calls serve with the stream of each request that has been read whole.
func (p peer) requests(serve func(stream uint32) error) error {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return err
		}
		if h := f.Header(); (h.Type == http2.FrameHeaders || h.Type == http2.FrameData) && h.Flags.Has(http2.FlagDataEndStream) {
			if err := serve(h.StreamID); err != nil {
				return err
			}
		}
	}
}

// startHTTP2 serves each connection by hand; serve gets the preface read.
func startHTTP2(t *testing.T, serve func(peer) error) string {
	return startRaw(t, func(conn net.Conn) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
			t.Errorf("the connection begins with %q, %v", preface, err)
			return
		}
		p := peer{http2.NewFramer(conn, conn), conn}
		if p.WriteSettings() == nil {
			_ = serve(p) // the load ends the connection
		}
	})
}

func http2Spec(target string, n int) Spec {
	return Spec{Target: target, Workload: workload.PayloadRecv, Protocol: workload.HTTP2, Size: 4, Iterations: n, Timeout: quantity.Duration(5 * time.Second)}
}

// Each of these ends a request, and the reason is in its row.
func TestHTTP2ErrorClasses(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(p peer, stream uint32) error
		want   string
	}{
		{"goes away", func(p peer, _ uint32) error { return p.WriteGoAway(0, http2.ErrCodeNo, nil) }, classClosed},
		{"closes", func(peer, uint32) error { return io.EOF }, classClosed},
		{"closes in the body", func(p peer, s uint32) error { return errors.Join(p.head(s, "200", false), io.EOF) }, classShortBody},
		{"resets the stream", func(p peer, s uint32) error { return p.WriteRSTStream(s, http2.ErrCodeInternal) }, classStream},
		{"resets the stream in the body", func(p peer, s uint32) error {
			return errors.Join(p.head(s, "200", false), p.WriteRSTStream(s, http2.ErrCodeCancel))
		}, classStream},
		{"status", func(p peer, s uint32) error { return p.say(s, "503", "busy") }, "status 503"},
		{"status of no digits", func(p peer, s uint32) error { return p.say(s, "2OO", "") }, classMalformed},
		{"no status", func(p peer, s uint32) error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: fields("a", "b"), EndHeaders: true, EndStream: true})
		}, classMalformed},
		{"data without a head", func(p peer, s uint32) error { return p.WriteData(s, true, []byte("x")) }, classMalformed},
		{"another's stream", func(p peer, s uint32) error { return p.say(s+2, "200", "x") }, classMalformed},
		{"push", func(p peer, s uint32) error {
			return p.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: fields(":path", "/"), EndHeaders: true})
		}, classMalformed},
		{"answer of HTTP/1.1", func(p peer, _ uint32) error {
			_, err := io.WriteString(p.conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			return err
		}, classMalformed},
		{"frame over the bound", func(p peer, s uint32) error {
			return errors.Join(p.head(s, "200", false), p.WriteData(s, true, make([]byte, frameMax+1)))
		}, classMalformed},
		{"settings that are not valid", func(p peer, _ uint32) error {
			return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}, classMalformed},
		{"window over the bound", func(p peer, _ uint32) error { return p.WriteWindowUpdate(0, windowMax) }, classMalformed},
		{"interim for ever", func(p peer, s uint32) error {
			for range interimMax + 1 {
				if err := p.head(s, "103", false); err != nil {
					return err
				}
			}
			return nil
		}, classMalformed},
		{"settings for ever", func(p peer, _ uint32) error {
			for range controlMax + 1 {
				if err := p.WriteSettings(); err != nil {
					return err
				}
			}
			return nil
		}, classMalformed},
		{"long body", func(p peer, s uint32) error {
			err := p.head(s, "200", false)
			for range answerMin/1000 + 1 {
				err = errors.Join(err, p.WriteData(s, false, make([]byte, 1000)))
			}
			return err
		}, classLongBody},
	} {
		target := startHTTP2(t, func(p peer) error {
			return p.requests(func(stream uint32) error { return c.answer(p, stream) })
		})
		result, err := Run(t.Context(), http2Spec(target, 1))
		if !errors.Is(err, ErrNoAnswer) || len(result.Requests) != 1 {
			t.Errorf("%s: %d rows, error %v", c.name, len(result.Requests), err)
			continue
		}
		if got := result.Requests[0].Error; got != c.want {
			t.Errorf("%s: classed as %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHTTP2AnswersThatAreCorrect(t *testing.T) {
	for name, answer := range map[string]func(p peer, stream uint32) error{
		"empty":       func(p peer, s uint32) error { return p.head(s, "204", true) },
		"early hints": func(p peer, s uint32) error { return errors.Join(p.head(s, "103", false), p.say(s, "200", "hello")) },
		"padded": func(p peer, s uint32) error {
			return errors.Join(p.head(s, "200", false), p.WriteDataPadded(s, true, []byte("hello"), make([]byte, 20)))
		},
		"trailers": func(p peer, s uint32) error {
			return errors.Join(p.head(s, "200", false), p.WriteData(s, false, []byte("hello")),
				p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: fields("a", "b"), EndHeaders: true, EndStream: true}))
		},
		"header in pieces": func(p peer, s uint32) error {
			block := fields(":status", "200", "x", strings.Repeat("y", 100))
			return errors.Join(
				p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block[:10], EndStream: true}),
				p.WriteContinuation(s, true, block[10:]))
		},
		"frame of no known kind": func(p peer, s uint32) error {
			return errors.Join(p.WriteRawFrame(0x77, 0xff, s, []byte("?")), p.say(s, "200", "hello"))
		},
		"word on a stream that is over": func(p peer, s uint32) error {
			return errors.Join(p.say(s, "200", "hello"), p.WriteRSTStream(s, http2.ErrCodeNo), p.WriteWindowUpdate(s, 1))
		},
	} {
		target := startHTTP2(t, func(p peer) error {
			return p.requests(func(stream uint32) error { return answer(p, stream) })
		})
		rows := run(t, http2Spec(target, 3))
		ordered(t, rows)
		if got := errorsOf(rows); !slices.Equal(got, []string{"", "", ""}) {
			t.Errorf("%s: errors %q", name, got)
		}
		if got, want := numbers(rows), [][2]int32{{1, 1}, {1, 2}, {1, 3}}; !slices.Equal(got, want) {
			t.Errorf("%s: connection and index %v, want %v", name, got, want)
		}
	}
}

// A server that announces its end is asked no more on that connection.
func TestHTTP2GoAwayAfterTheAnswer(t *testing.T) {
	target := startHTTP2(t, func(p peer) error {
		return p.requests(func(s uint32) error {
			return errors.Join(p.WriteGoAway(s, http2.ErrCodeNo, nil), p.say(s, "200", "hello"))
		})
	})
	rows := run(t, http2Spec(target, 3))
	if got, want := numbers(rows), [][2]int32{{1, 1}, {2, 1}, {3, 1}}; !slices.Equal(got, want) || rows[1].Error != "" {
		t.Errorf("connection and index %v, want %v; %+v", got, want, rows[1])
	}
}

// PING and SETTINGS are answered, or a server would end the connection.
func TestHTTP2Acknowledges(t *testing.T) {
	acknowledged := make(chan http2.FrameType, 10)
	target := startHTTP2(t, func(p peer) error {
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return err
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				continue
			case *http2.PingFrame:
				if f.Data == [8]byte{1: 7} && f.IsAck() {
					acknowledged <- http2.FramePing
				}
			case *http2.SettingsFrame:
				if f.IsAck() {
					acknowledged <- http2.FrameSettings
				}
			case *http2.DataFrame:
				if err := errors.Join(p.WritePing(false, [8]byte{1: 7}), p.say(f.StreamID, "200", "")); err != nil {
					return err
				}
			}
		}
	})
	run(t, http2Spec(target, 1))
	for _, want := range []http2.FrameType{http2.FrameSettings, http2.FramePing} {
		select {
		case got := <-acknowledged:
			if got != want {
				t.Errorf("%s is acknowledged, want %s", got, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s is not acknowledged", want)
		}
	}
}

// The load sends no more than the windows allow, and all of it in the end.
func TestHTTP2FlowControl(t *testing.T) {
	const size, window, step = 200_000, 10_000, 7_000
	target := startHTTP2(t, func(p peer) error {
		if err := p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
			return err
		}
		// Before it has seen the settings the load sends as much as RFC 9113 allows
		// at first, which the settings then turn into a debt.
		got, allowed, debt := 0, windowDefault, windowDefault-window
		for {
			data, err := p.data()
			if err != nil {
				return err
			}
			if got += len(data.Data()); got > allowed {
				return fmt.Errorf("%d bytes, allowed %d", got, allowed)
			}
			if data.StreamEnded() {
				status := "200"
				if got != size {
					status = "500"
				}
				return p.say(data.StreamID, status, "")
			}
			if got == allowed {
				grant := uint32(debt + step)
				allowed, debt = got+step, 0
				if err := errors.Join(p.WriteWindowUpdate(0, step), p.WriteWindowUpdate(data.StreamID, grant)); err != nil {
					return err
				}
			}
		}
	})
	s := http2Spec(target, 1)
	s.Size = size
	rows := run(t, s)
	if rows[0].Error != "" {
		t.Errorf("a request through a small window: %+v", rows[0])
	}
}

// A peer that takes a large body in small pieces says so for each, twice.
func TestHTTP2LargeBody(t *testing.T) {
	const size = 64 << 20
	s := http2Spec(start(t, workload.PayloadRecv), 1)
	s.Workload, s.Size = workload.PayloadRecv, size
	if rows := run(t, s); rows[0].Error != "" {
		t.Errorf("%d bytes: %+v", size, rows[0])
	}
	target := startHTTP2(t, func(p peer) error {
		for {
			data, err := p.data()
			if err != nil {
				return err
			}
			if data.StreamEnded() {
				return p.say(data.StreamID, "200", "")
			}
			for left := uint32(len(data.Data())); left > 0; left -= min(left, 1024) {
				if err := errors.Join(p.WriteWindowUpdate(0, min(left, 1024)), p.WriteWindowUpdate(data.StreamID, min(left, 1024))); err != nil {
					return err
				}
			}
		}
	})
	s = http2Spec(target, 1)
	s.Size = size
	if rows := run(t, s); rows[0].Error != "" {
		t.Errorf("%d bytes a KiB at a time: %+v", size, rows[0])
	}
}

// Windows for ever are bounded, too.
func TestHTTP2WindowsForEver(t *testing.T) {
	target := startHTTP2(t, func(p peer) error {
		return p.requests(func(uint32) error {
			for range answerOverhead {
				if err := p.WriteWindowUpdate(0, 1); err != nil {
					return err
				}
			}
			return nil
		})
	})
	wantClass(t, "windows for ever", http2Spec(target, 1), classLongBody)
}

// Many answers use up the connection's window, unless it is granted anew.
func TestHTTP2GrantsItsWindowAgain(t *testing.T) {
	p, err := newPlan(t.Context(), http2Spec("127.0.0.1:1", 1))
	if err != nil {
		t.Fatal(err)
	}
	h := p.protocol(p.aims[0]).(*http2Link)
	var text bytes.Buffer
	far := peer{http2.NewFramer(&text, nil), nil}
	if err := far.say(1, "200", "hello"); err != nil {
		t.Fatal(err)
	}
	l := scripted(h, &text)
	var sent bytes.Buffer
	l.conn = recorder{l.conn, &sent}
	h.taken = windowMax / 2
	if _, err := l.exchange(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	near := http2.NewFramer(nil, bytes.NewReader(sent.Bytes()[len(http2.ClientPreface):]))
	var grants []uint32
	for {
		f, err := near.ReadFrame()
		if err != nil {
			break
		}
		if w, ok := f.(*http2.WindowUpdateFrame); ok {
			grants = append(grants, w.Increment)
		}
	}
	if want := []uint32{windowMax - windowDefault, windowMax/2 + 5}; !slices.Equal(grants, want) || h.taken != 0 {
		t.Errorf("granted %v with %d taken, want %v", grants, h.taken, want)
	}
}

// recorder keeps what is written.
type recorder struct {
	io.ReadWriteCloser
	sent *bytes.Buffer
}

func (r recorder) Write(p []byte) (int, error) { return r.sent.Write(p) }

// The service's own handlers answer alike by both versions.
func TestHTTP2EveryWorkload(t *testing.T) {
	for _, s := range []Spec{
		{Workload: workload.PayloadRecv, Size: 1e6},
		{Workload: workload.StaticReply},
		{Workload: workload.HelloWorld},
		{Workload: workload.Sleep, Work: Work{Time: quantity.Duration(2500 * time.Microsecond)}},
		{Workload: workload.Burn, Work: Work{Time: quantity.Duration(time.Millisecond)}},
	} {
		s.Target, s.Protocol, s.Threads, s.Iterations = start(t, s.Workload), workload.HTTP2, 3, 4
		for i, r := range run(t, s) {
			if r.Error != "" || r.Status != http.StatusOK {
				t.Errorf("%s: row %d: %+v", s.Workload, i, r)
			}
			if asked := s.Time.Std(); time.Duration(r.ResponseNs()) < asked {
				t.Errorf("%s: answered after %d ns, asked for %s", s.Workload, r.ResponseNs(), asked)
			}
		}
	}
}

// FuzzHTTP2 holds that no answer panics or reads past its bound, and that one
// that is taken lies within the buffer.
func FuzzHTTP2(f *testing.F) {
	add := func(write func(peer) error) {
		var b bytes.Buffer
		if err := write(peer{http2.NewFramer(&b, nil), &b}); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	add(func(p peer) error { return errors.Join(p.WriteSettings(), p.say(1, "200", "hello")) })
	add(func(p peer) error {
		return errors.Join(p.WritePing(false, [8]byte{}), p.head(1, "103", false), p.head(1, "204", true))
	})
	add(func(p peer) error { return errors.Join(p.WriteGoAway(0, http2.ErrCodeNo, nil), p.WriteRSTStream(1, 0)) })
	spec := http2Spec("127.0.0.1:1", 1)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := newPlan(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		l := scripted(p.protocol(p.aims[0]), bytes.NewReader(text))
		got, err := l.exchange(make([]byte, 64))
		if got.length < 0 || got.length > 64 {
			t.Errorf("a body of %d bytes in a buffer of 64", got.length)
		}
		if err == nil && (got.status < 200 || got.status > 999 || got.length == 64 || l.firstByte == 0) {
			t.Errorf("taken as an answer: %+v, first byte at %d", got, l.firstByte)
		}
		if err != nil && class(err) == classOther {
			t.Errorf("error of no class: %v", err)
		}
	})
}
