package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// labelBytes of what a connection says first: echoLabel, or who it is.
const (
	labelBytes = 8
	echoLabel  = "echo    "
)

// sink takes what connections say. To one that begins with echoLabel it says the rest back;
// of any other it prints how many bytes it said, when it is over.
func sink(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("sink takes LISTEN")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go take(conn)
	}
}

// take serves one connection. A client that goes away is no fault of ours.
func take(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	label := make([]byte, labelBytes)
	if _, err := io.ReadFull(conn, label); err != nil {
		return
	}
	if string(label) == echoLabel {
		_, _ = io.Copy(conn, conn)
		return
	}
	n, _ := io.Copy(io.Discard, conn)
	_, _ = fmt.Fprintf(os.Stdout, "%s %d\n", label, n)
}
