package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// labelBytes of what a connection says first: who it is.
const labelBytes = 8

// sink takes whatever connections say, or says it back. Of each that has a label it prints
// how many bytes it said, when it is over.
func sink(ctx context.Context, args []string) error {
	if len(args) != 2 || args[0] != "count" && args[0] != "echo" {
		return errors.New("sink takes count|echo LISTEN")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", args[1])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if args[0] == "echo" {
				_, _ = io.Copy(conn, conn) // a client that goes away is no fault of ours
				return
			}
			label := make([]byte, labelBytes)
			if _, err := io.ReadFull(conn, label); err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, conn)
			_, _ = fmt.Fprintf(os.Stdout, "%s %d\n", label, n)
		}()
	}
}
