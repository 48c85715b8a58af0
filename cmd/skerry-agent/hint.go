package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/load/oneway"
)

// hint says what to do about an error, "" where nothing general can be said.
func hint(err error) string {
	for _, known := range []struct {
		err  error
		text string
	}{
		{syscall.EADDRINUSE, "another process has this port: 'ss -lntup' names it; stop it or choose another --listen"},
		{syscall.EADDRNOTAVAIL, "--listen takes an address of this node: 'ip address' lists them"},
		{syscall.ENOSPC, "free space on the disk of --out, or name a file on another disk"},
		{syscall.EROFS, "the disk of --out is read-only: name a file on another disk"},
		{load.ErrSpec, "correct the load spec, or let 'skerry run' write it"},
		{load.ErrNoAnswer, "see that the workload is served and that the system under test leads to it"},
		{oneway.ErrSilence, "start the talker after this program has said ready, and see that UDP gets through"},
		{context.Canceled, "it was stopped from outside; nothing was written"},
		{os.ErrNotExist, "see that the file or its folder exists"},
		{os.ErrPermission, "run as a user who may use this file or port; ports below 1024 need root"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	if askedWrongly(err) {
		return "'skerry-agent --help' lists the roles, 'skerry-agent ROLE --help' the flags of one"
	}
	return ""
}
