package native

import (
	"encoding/binary"
	"fmt"
	"io"

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
	kindBlock                  // bytes of a stream that come in pieces on lanes
	kindBundle                 // blocks may come and go by a bundle
	kindTaken                  // blocks were taken
	kindLoss                   // packets that were sent, and how many of them were lost
	kindDone                   // all of a stream was passed on: it is over, and the connection free
)

const (
	// headerBytes: kind (1), length of what follows (3), stream (4), big endian.
	headerBytes = 8
	// payloadMax is the most that follows a header.
	payloadMax = 64 << 10
	// pingMax is what a ping may carry.
	pingMax   = 64
	codeBytes = 4
	// blockBytes: number (4) and size (4) of a block; bundleBytes: name (16) of a bundle, and
	// number (4) of the connection in it.
	blockBytes  = 8
	bundleBytes = 20
	// lossBytes: packets (4), and those lost (4).
	lossBytes = 8
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
	case kindFIN, kindAccept, kindLeave, kindDone:
		most = 0
	case kindReset:
		least, most = codeBytes, codeBytes
	case kindPad:
	case kindPing, kindPong:
		most = pingMax
	case kindBlock:
		least, most = blockBytes, blockBytes
	case kindBundle:
		least, most = bundleBytes, bundleBytes
	case kindTaken:
		least, most = codeBytes, codeBytes
	case kindLoss:
		least, most = lossBytes, lossBytes
	default:
		return h, fmt.Errorf("a frame of kind %d: %w", h.kind, transport.ErrProtocol)
	}
	if h.length < least || h.length > most {
		return h, fmt.Errorf("a frame of kind %d with %d bytes: %w", h.kind, h.length, transport.ErrProtocol)
	}
	ofStream := h.kind <= kindAccept || h.kind == kindBlock || h.kind == kindDone
	if ofStream != (h.stream != 0) {
		return h, fmt.Errorf("a frame of kind %d of stream %d: %w", h.kind, h.stream, transport.ErrProtocol)
	}
	return h, nil
}

// appendOpen adds the payload of an open frame, but for the first bytes.
func appendOpen(to []byte, r transport.Request) ([]byte, error) {
	text, err := transport.EncodeRequest(r)
	if err != nil {
		return to, err
	}
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...), nil
}

// readOpen reads the message of an open frame of that length, and says how many first
// bytes of the stream follow in it.
func readOpen(r io.Reader, length int) (asked transport.Request, first int, err error) {
	var b [sizeBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return asked, 0, err
	}
	size := int(binary.BigEndian.Uint16(b[:]))
	if size > transport.RequestBytes || size > length-sizeBytes {
		return asked, 0, fmt.Errorf("an open frame of %d bytes with a message of %d: %w", length, size, transport.ErrProtocol)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return asked, 0, err
	}
	asked, err = transport.DecodeRequest(text)
	return asked, length - sizeBytes - size, err
}
