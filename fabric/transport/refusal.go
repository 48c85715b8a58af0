package transport

import (
	"errors"
	"fmt"
)

// Code is why a stream was refused or broken off, as gateways tell one another.
type Code uint32

// The codes. Numbers are part of the wire formats.
const (
	Broken      Code = iota + 1 // an application or a service has reset its connection
	Denied                      // by a policy
	NoService                   // nothing of that name is exported
	Unreachable                 // no backend accepts
	Overloaded                  // the gateway has no room
	Leaving                     // the gateway ends
)

// String is what the code means.
func (c Code) String() string {
	switch c {
	case Broken:
		return "reset by the other end"
	case Denied:
		return "denied by policy"
	case NoService:
		return "no such service is exported"
	case Unreachable:
		return "no backend accepts"
	case Overloaded:
		return "the peer's gateway has no room"
	case Leaving:
		return "the peer's gateway ends"
	}
	return fmt.Sprintf("reset with code %d", uint32(c))
}

// Refusal is an error that one gateway tells the other.
type Refusal struct{ Code Code }

// CodeOf is the code of an error that is told to a peer.
func CodeOf(err error) Code {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Code
	}
	return Unreachable
}

// Error is what the code means.
func (r *Refusal) Error() string { return r.Code.String() }
