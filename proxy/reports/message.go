// Package reports is what proxies tell each other, ten times a second by UDP: what a
// Service's pods on their node use, and what they have in flight to other nodes. A
// report that is lost, old, forged or sent again changes nothing: the next one says as
// much, and every value has an age.
//
// message.go is the bytes, book.go what is known by them, link.go the socket. Start at
// Book; docs/wire-reports.md has the format.
package reports

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"skerry.dev/skerry/proxy/snapshot"
)

// A Message is one datagram. Times are of the sender's own clock, since it began.
type Message struct {
	Node string `cbor:"1,keyasint"`
	// Epoch is when the sender began, ns since 1970; Number counts its messages from 1.
	Epoch  int64  `cbor:"2,keyasint"`
	Number uint64 `cbor:"3,keyasint"`
	// Sent is when this left; Echo answers the last that came from whom it is for.
	Sent     time.Duration `cbor:"4,keyasint"`
	Echo     Echo          `cbor:"5,keyasint"`
	Services []Service     `cbor:"6,keyasint"`
}

// An Echo is the Sent of a message, of an Epoch, and for how long it lay here.
type Echo struct {
	Epoch int64         `cbor:"1,keyasint"`
	Sent  time.Duration `cbor:"2,keyasint"`
	Held  time.Duration `cbor:"3,keyasint"`
}

// A Service is what a node says of one. Worked and Flight.Done only grow, so that a
// message that is lost loses nothing.
type Service struct {
	Key snapshot.Key `cbor:"1,keyasint"`
	// Pods is whether the node has pods of it: only then do the next four say anything.
	Pods    bool          `cbor:"2,keyasint"`
	CPU     float64       `cbor:"3,keyasint"` // share of their limits, as is RAM
	RAM     float64       `cbor:"4,keyasint"`
	Cores   float64       `cbor:"5,keyasint"` // that they may use together
	Worked  time.Duration `cbor:"6,keyasint"` // CPU time, since the sender began
	Flights []Flight      `cbor:"7,keyasint"`
}

// A Flight is what a node's proxy has sent to another, or to its own.
type Flight struct {
	Node     string  `cbor:"1,keyasint"`
	InFlight float64 `cbor:"2,keyasint"` // at its servers, on average since the last report
	Done     uint64  `cbor:"3,keyasint"` // that it has answered
}

// Bounds of a message.
const (
	sizeMost     = 1400 // bytes: below any usual MTU
	servicesMost = 64
	flightsMost  = 256
	nameMost     = 253
	tagSize      = 16
	// KeyLeast is how long a key must be, in bytes.
	KeyLeast = 32
)

// What is wrong with a datagram.
var (
	ErrForged    = errors.New("report is not signed by a key of this cluster")
	ErrMalformed = errors.New("malformed report")
)

// encode signs a message: a truncated HMAC-SHA-256, then CBOR (RFC 2104, RFC 8949).
func encode(m *Message, key *signer) ([]byte, error) {
	body, err := cbor.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(key.tag(body), body...), nil
}

// decoder is made once, since that takes longer than to decode a message. It takes these options.
var decoder, _ = cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxArrayElements: flightsMost, MaxMapPairs: 64, MaxNestedLevels: 8, IndefLength: cbor.IndefLengthForbidden, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()

// decode reads a datagram that one of the keys has signed.
func decode(datagram []byte, keys []*signer) (*Message, error) {
	if len(datagram) <= tagSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(datagram))
	}
	tag, body := datagram[:tagSize], datagram[tagSize:]
	if !slices.ContainsFunc(keys, func(k *signer) bool { return hmac.Equal(tag, k.tag(body)) }) {
		return nil, ErrForged
	}
	m := &Message{}
	if err := decoder.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return m, m.check()
}

// check holds a message to its bounds: a proxy that has gone wrong has the key as well.
func (m *Message) check() error {
	bad := m.Node == "" || len(m.Node) > nameMost || m.Number == 0 || m.Sent < 0 || m.Echo.Held < 0 || len(m.Services) > servicesMost
	for _, s := range m.Services {
		bad = bad || len(s.Key.Namespace)+len(s.Key.Name) > 2*nameMost || len(s.Flights) > flightsMost ||
			!sane(s.CPU) || !sane(s.RAM) || !sane(s.Cores) || s.Worked < 0
		for _, f := range s.Flights {
			bad = bad || len(f.Node) > nameMost || !sane(f.InFlight)
		}
	}
	if bad {
		return fmt.Errorf("%w: a value out of its bounds", ErrMalformed)
	}
	return nil
}

// sane says whether a number can be meant: NaN and infinities are not.
func sane(f float64) bool { return f >= 0 && f < 1e9 }
