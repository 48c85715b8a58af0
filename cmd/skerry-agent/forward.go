package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// inheritedListener is the descriptor of the socket that the role takes over: it
// was opened in another network namespace than the one that it dials in.
const inheritedListener = 3

// acceptPause is what the role waits when it has no descriptor for a connection.
const acceptPause = 100 * time.Millisecond

// forwardCommand hands connections of an inherited listener on to an address.
func forwardCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:    "forward --to HOST:PORT",
		Short:  "Hand connections of an inherited listener on to an address in this node",
		Args:   none,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(to); err != nil {
				return usage("--to %q is no HOST:PORT", to)
			}
			file := os.NewFile(inheritedListener, "listener")
			listener, err := net.FileListener(file)
			if err != nil {
				return usage("descriptor %d is no listener: %w", inheritedListener, err)
			}
			return forward(cmd.Context(), listener, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "address that connections are handed on to")
	return cmd
}

// forward goes on until its context ends.
func forward(ctx context.Context, listener net.Listener, to string) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			time.Sleep(acceptPause) // until a connection ends
			continue
		case err != nil:
			return fmt.Errorf("forward: %w", err)
		}
		go handOn(ctx, conn, to)
	}
}

// handOn carries one connection in both directions. Each end that closes its half
// has the other's closed; one that cannot be dialled is reset.
func handOn(ctx context.Context, from net.Conn, to string) {
	defer func() { _ = from.Close() }()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		if tcp, ok := from.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	defer func() { _ = conn.Close() }()
	done := make(chan struct{})
	go func() { carry(conn, from); close(done) }()
	carry(from, conn)
	<-done
}

// carry copies until the source's half is closed, and closes the other's.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	_, _ = to.Close(), from.Close() // one end is gone
}
