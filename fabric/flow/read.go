package flow

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// lineMax bounds a record's line. The attributes of a client are at most 8 KiB on the
// wire, of which JSON may make six times as many.
const lineMax = 128 << 10

// ErrRecord says that a line is no record.
var ErrRecord = errors.New("not a record of a flow")

// Read gives the records of a log, until one is wrong. A last line that has no end is not
// read: a gateway may be writing it.
func Read(r io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		in := bufio.NewReaderSize(r, lineMax)
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			var one *Record
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				err = fmt.Errorf("line %d: longer than %d bytes: %w", n, lineMax, ErrRecord)
			case err == nil:
				if one, err = Decode(line); err != nil {
					err = fmt.Errorf("line %d: %w", n, err)
				}
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// Decode reads one line.
func Decode(line []byte) (*Record, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	r := &Record{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows it", ErrRecord)
	}
	return r, r.check()
}

// check says what a record cannot be.
func (r *Record) check() error {
	switch {
	case r.Begin.IsZero():
		return fmt.Errorf("%w: it has no begin", ErrRecord)
	case r.Direction != Import && r.Direction != Export:
		return fmt.Errorf("%w: the direction %q", ErrRecord, r.Direction)
	case r.Verdict != Allowed && r.Verdict != Denied && r.Verdict != Refused && r.Verdict != Broken:
		return fmt.Errorf("%w: the verdict %q", ErrRecord, r.Verdict)
	case min(r.ToServiceBytes, r.ToClientBytes, r.OpenNs, r.FirstByteNs, r.TotalNs) < 0:
		return fmt.Errorf("%w: a negative number", ErrRecord)
	}
	return nil
}
