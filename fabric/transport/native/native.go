// Package native carries streams over TLS connections that were opened before they are
// needed. A stream owns a connection while it lasts, so that none stands in another's
// way, and the frame that opens it needs no answer: what the application says follows at
// once. docs/wire-native.md is the wire format.
//
// It does not say who may call what: the backends of a Server do. Start at NewPool for
// the side that calls, at NewServer for the one that is called.
package native

// Protocol is the name of this wire format in TLS (ALPN, RFC 7301).
const Protocol = "skerry-native/1"
