package transport

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// RequestBytes is the longest message that a request is told by.
const RequestBytes = 8 << 10

// message is a request as gateways tell it one another (CBOR, RFC 8949).
type message struct {
	Target Target            `cbor:"1,keyasint"`
	Source map[string]string `cbor:"2,keyasint,omitempty"`
	// Confirm asks for an answer before bytes flow.
	Confirm bool `cbor:"3,keyasint,omitempty"`
	// Client is text: ADDRESS:PORT.
	Client Client `cbor:"4,keyasint,omitzero"`
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

// EncodeRequest writes the message that opens a stream or a flow.
func EncodeRequest(r Request) ([]byte, error) {
	text, err := asText.Marshal(message{r.Target, r.Source, r.Confirm, r.Client})
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	if len(text) > RequestBytes {
		return nil, fmt.Errorf("a request of %d bytes: the most is %d", len(text), RequestBytes)
	}
	return text, nil
}

// DecodeRequest reads it.
func DecodeRequest(text []byte) (Request, error) {
	if len(text) > RequestBytes {
		return Request{}, fmt.Errorf("a message of %d bytes that opens: %w", len(text), ErrProtocol)
	}
	var m message
	if err := strictly.Unmarshal(text, &m); err != nil {
		return Request{}, fmt.Errorf("the message that opens: %w: %w", ErrProtocol, err)
	}
	return Request{Target: m.Target, Source: m.Source, Client: m.Client, Confirm: m.Confirm}, nil
}
