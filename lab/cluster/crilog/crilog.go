// Package crilog reads what container runtimes write of containers' output: lines of the
// Container Runtime Interface, "TIME STREAM TAGS TEXT". Start at Text.
package crilog

import "bytes"

// Text is that of a line, with its end; without one where the tag P says that the line goes
// on in the next. What is no such line is itself.
func Text(line []byte) []byte {
	const frame, tags = 4, 2
	parts := bytes.SplitN(line, []byte(" "), frame)
	if len(parts) < frame {
		return line
	}
	if bytes.HasPrefix(parts[tags], []byte("P")) {
		return bytes.TrimSuffix(parts[frame-1], []byte("\n"))
	}
	return parts[frame-1]
}
