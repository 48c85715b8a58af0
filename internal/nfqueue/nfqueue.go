// Package nfqueue reads what the kernel tells of its NFQUEUEs in
// /proc/net/netfilter/nfnetlink_queue. It opens no file and takes no packet:
// lab/impair/userspace does. Start at Parse.
package nfqueue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Queue is one NFQUEUE of a network namespace. Counts go back to when its reader
// bound it, and wrap at 2^32 packets.
type Queue struct {
	Number uint16
	// Packets that have come to it, those of them that are Waiting for a verdict.
	Packets, Waiting uint64
	// Dropped because the queue was full, or its reader's socket.
	Dropped uint64
}

// ErrFormat is wrapped for text that the kernel does not write.
var ErrFormat = errors.New("unknown format of nfnetlink_queue")

// Fields of a line, as seq_show of nfnetlink_queue.c writes them.
const (
	number = iota
	_      // the port of its reader
	waiting
	_ // how much of a packet is copied: the mode
	_ // and the range
	full
	unread
	last // the number of the last packet
	fieldsLeast
)

// Parse reads the text of the file, a line for each queue.
func Parse(text string) ([]Queue, error) {
	var all []Queue
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < fieldsLeast {
			return nil, fmt.Errorf("%w: %q", ErrFormat, line)
		}
		var values [fieldsLeast]uint64
		for i := range values {
			bits := 32
			if i == number {
				bits = 16
			}
			var err error
			if values[i], err = strconv.ParseUint(fields[i], 10, bits); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrFormat, err)
			}
		}
		all = append(all, Queue{
			Number: uint16(values[number]), Packets: values[last],
			Waiting: values[waiting], Dropped: values[full] + values[unread],
		})
	}
	return all, nil
}
