package native

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"

	"skerry.dev/skerry/fabric/transport"
)

// kind of a frame.
type kind byte

const (
	kindOpen   kind = iota + 1 // begins a stream: an open message, then the first bytes
	kindData                   // bytes of a stream
	kindFIN                    // no more bytes in this direction
	kindReset                  // the stream is over in both directions: a code
	kindAccept                 // the service has accepted a stream that asked to be told
	kindPad                    // bytes for nobody
	kindPing                   // to be sent back
	kindPong                   // a ping that comes back
	kindLeave                  // the sender takes no more streams on the connection
)

const (
	// headerBytes: kind (1), length of what follows (3), stream (4), big endian.
	headerBytes = 8
	// payloadMax is the most that follows a header.
	payloadMax = 64 << 10
	// openMax is the longest message of an open frame, without first bytes.
	openMax = 8 << 10
	// pingMax is what a ping may carry.
	pingMax   = 64
	codeBytes = 4
	// sizeBytes of the size of an open frame's message.
	sizeBytes = 2
)

// header of a frame.
type header struct {
	kind   kind
	length int
	stream uint32
}

// put writes a header into the first bytes of a buffer.
func (h header) put(into []byte) {
	binary.BigEndian.PutUint32(into, uint32(h.kind)<<24|uint32(h.length))
	binary.BigEndian.PutUint32(into[4:], h.stream)
}

// readHeader reads one, and holds it to the bounds of its kind.
func readHeader(r io.Reader) (header, error) {
	var b [headerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return parseHeader(b)
}

func parseHeader(b [headerBytes]byte) (header, error) {
	word := binary.BigEndian.Uint32(b[:])
	h := header{kind(word >> 24), int(word & 0xffffff), binary.BigEndian.Uint32(b[4:])}
	least, most := 0, payloadMax
	switch h.kind {
	case kindOpen:
		least = sizeBytes
	case kindData:
		least = 1
	case kindFIN, kindAccept, kindLeave:
		most = 0
	case kindReset:
		least, most = codeBytes, codeBytes
	case kindPad:
	case kindPing, kindPong:
		most = pingMax
	default:
		return h, fmt.Errorf("a frame of kind %d: %w", h.kind, transport.ErrProtocol)
	}
	if h.length < least || h.length > most {
		return h, fmt.Errorf("a frame of kind %d with %d bytes: %w", h.kind, h.length, transport.ErrProtocol)
	}
	ofStream := h.kind <= kindAccept
	if ofStream != (h.stream != 0) {
		return h, fmt.Errorf("a frame of kind %d of stream %d: %w", h.kind, h.stream, transport.ErrProtocol)
	}
	return h, nil
}

// message of an open frame (CBOR, RFC 8949).
type message struct {
	Target transport.Target  `cbor:"1,keyasint"`
	Source map[string]string `cbor:"2,keyasint,omitempty"`
	// Confirm asks for an answer before bytes flow.
	Confirm bool `cbor:"3,keyasint,omitempty"`
	// Client is text: ADDRESS:PORT.
	Client transport.Client `cbor:"4,keyasint,omitzero"`
}

// strictly takes nothing twice, nothing without end and nothing unknown.
var strictly = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxNestedLevels: 4, MaxMapPairs: 64, MaxArrayElements: 16,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		TextUnmarshaler:   cbor.TextUnmarshalerTextString,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// asText writes what has a form as text in that.
var asText = func() cbor.EncMode {
	mode, err := cbor.EncOptions{TextMarshaler: cbor.TextMarshalerTextString}.EncMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// appendOpen adds the payload of an open frame, but for the first bytes.
func appendOpen(to []byte, m message) ([]byte, error) {
	text, err := asText.Marshal(m)
	if err != nil {
		return to, fmt.Errorf("encode a request: %w", err)
	}
	if len(text) > openMax {
		return to, fmt.Errorf("a request of %d bytes: the most is %d", len(text), openMax)
	}
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...), nil
}

// readOpen reads the message of an open frame of that length, and says how many first
// bytes of the stream follow in it.
func readOpen(r io.Reader, length int) (m message, first int, err error) {
	var b [sizeBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return m, 0, err
	}
	size := int(binary.BigEndian.Uint16(b[:]))
	if size > openMax || size > length-sizeBytes {
		return m, 0, fmt.Errorf("an open frame of %d bytes with a message of %d: %w", length, size, transport.ErrProtocol)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return m, 0, err
	}
	if err := strictly.Unmarshal(text, &m); err != nil {
		return m, 0, fmt.Errorf("the message of an open frame: %w: %w", transport.ErrProtocol, err)
	}
	return m, length - sizeBytes - size, nil
}
