package datagram

import (
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/transport"
)

const (
	// requestRoom is what a stream's sender may say before it is read.
	requestRoom = 2 * transport.RequestBytes
	// requestTimeout bounds how long the message that opens a flow may take.
	requestTimeout = 5 * time.Second
)

// ask says on a flow's stream what the flow is to be.
func ask(s *quic.Stream, r transport.Request) error {
	text, err := transport.EncodeRequest(r)
	if err != nil {
		return err
	}
	if _, err := s.Write(text); err != nil {
		return err
	}
	return s.Close()
}

// asked reads it.
func asked(s *quic.Stream) (transport.Request, error) {
	_ = s.SetReadDeadline(time.Now().Add(requestTimeout)) // it never fails
	text, err := io.ReadAll(io.LimitReader(s, transport.RequestBytes+1))
	if err != nil {
		return transport.Request{}, err
	}
	if len(text) > transport.RequestBytes {
		return transport.Request{}, fmt.Errorf("a message of more than %d bytes: %w", transport.RequestBytes, transport.ErrProtocol)
	}
	return transport.DecodeRequest(text)
}
