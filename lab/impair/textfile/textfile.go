// Package textfile is for the files of lines that say how a link is to behave: read
// whole, up to a bound, with errors that name the line. Start at Read.
package textfile

import (
	"fmt"
	"io"
	"os"
)

// BytesMax is the size of the largest file that is read.
const BytesMax = 64 << 20

// Error says what is wrong with a line of a file.
type Error struct {
	// Line counts from 1; 0 is the file as a whole.
	Line          int
	Message, Hint string
}

// Error prints the line, the message and the hint on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message + "; " + e.Hint
	}
	return fmt.Sprintf("line %d: %s; %s", e.Line, e.Message, e.Hint)
}

// Wrong is an Error whose message is formatted.
func Wrong(line int, hint, format string, args ...any) error {
	return &Error{Line: line, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Read gives what is in a file. One that is longer than BytesMax, or does not end,
// is an *Error. Each error names the file.
func Read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, BytesMax+1))
	if err == nil && len(data) > BytesMax {
		err = fmt.Errorf("%s: %w", name, Wrong(0, "cut it", "the file has more than %d bytes", BytesMax))
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
