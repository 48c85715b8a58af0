package sample

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// ErrSchema is returned for a file that is no Parquet file of the kind of rows
// asked for, or of another version.
var ErrSchema = errors.New("not this kind of sample file")

// ErrDamaged is returned for a Parquet file that is cut short or does not decode.
var ErrDamaged = errors.New("damaged sample file")

// Bounds of a file, and of the memory that reading one takes.
const (
	rowsMax      = 2e7
	rowsPerGroup = 1 << 20
	rowsPerRead  = 1 << 10
	footerMin    = 12 // magic, footer length, magic
	footerMax    = 1 << 24
	chunkMax     = 1 << 30 // uncompressed bytes of a column in a row group
)

// kindKey is the metadata key that names the kind of rows and their version. A
// change of the columns takes a new version.
const kindKey = "skerry.sample"

type kind string

const (
	kindRequest kind = "request/1"
	kindOneWay  kind = "oneway/2"
)

// WriteRequests writes rows as one Parquet file, compressed with zstd. The
// file is complete only when the error is nil.
func WriteRequests(w io.Writer, rows []Request) error { return write(w, kindRequest, rows) }

// WriteOneWay writes rows as WriteRequests does.
func WriteOneWay(w io.Writer, rows []OneWay) error { return write(w, kindOneWay, rows) }

// ReadRequests reads a whole file that WriteRequests wrote; size is in bytes.
// The error is ErrSchema, ErrDamaged or the reader's own.
func ReadRequests(r io.ReaderAt, size int64) ([]Request, error) {
	return read[Request](r, size, kindRequest)
}

// ReadOneWay reads a whole file that WriteOneWay wrote; size is in bytes.
func ReadOneWay(r io.ReaderAt, size int64) ([]OneWay, error) {
	return read[OneWay](r, size, kindOneWay)
}

// ScanRequests hands the rows of such a file to each, some at a time, and holds
// no more than those: each may keep none of them. It ends with the first error,
// that of each as it is.
func ScanRequests(r io.ReaderAt, size int64, each func(rows []Request) error) error {
	return scan(r, size, kindRequest, each)
}

func write[T any](w io.Writer, k kind, rows []T) error {
	if len(rows) > rowsMax {
		return fmt.Errorf("write %s: %d rows are over the bound of %d", k, len(rows), int(rowsMax))
	}
	p := parquet.NewGenericWriter[T](w,
		parquet.Compression(&zstd.Codec{}),
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.KeyValueMetadata(kindKey, string(k)))
	if _, err := p.Write(rows); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	return nil
}

// read grows the rows as they are read: their number is the footer's word until
// then.
func read[T any](r io.ReaderAt, size int64, k kind) ([]T, error) {
	rows := []T{}
	err := scan(r, size, k, func(some []T) error {
		rows = append(rows, some...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func scan[T any](r io.ReaderAt, size int64, k kind, each func([]T) error) error {
	if err := checkFooter(r, size); err != nil {
		return fmt.Errorf("read %s: %w", k, err)
	}
	var f *parquet.File
	err := guard(func() (err error) {
		if f, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return checkKind[T](f, k)
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", k, err)
	}
	var stopped error
	err = scanRows(f, func(rows []T) error {
		stopped = each(rows)
		return stopped
	})
	if stopped != nil || err == nil {
		return stopped
	}
	return fmt.Errorf("read %s: %w: %w", k, ErrDamaged, err)
}

// guard turns the library's panics into ErrDamaged: parquet-go trusts the
// offsets and counts of a footer, and indexes out of range where they lie.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return call()
}

// checkFooter refuses what the library would allocate for before it looks: the
// footer's length is the file's own word.
func checkFooter(r io.ReaderAt, size int64) error {
	if size < footerMin {
		return fmt.Errorf("%w: %d bytes cannot be a Parquet file", ErrSchema, size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return err
	}
	if string(head[:]) != "PAR1" {
		return fmt.Errorf("%w: no Parquet file", ErrSchema)
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > min(size-footerMin, footerMax) {
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrDamaged, n, size)
	}
	return nil
}

func checkKind[T any](f *parquet.File, k kind) error {
	got, ok := f.Lookup(kindKey)
	switch {
	case !ok:
		return fmt.Errorf("%w: Skerry did not write it", ErrSchema)
	case got != string(k):
		return fmt.Errorf("%w: it holds %q", ErrSchema, got)
	case !parquet.EqualNodes(f.Schema(), parquet.SchemaOf(new(T))):
		return fmt.Errorf("%w: its columns are not those of %s", ErrDamaged, k)
	case f.NumRows() < 0 || f.NumRows() > rowsMax:
		return fmt.Errorf("%w: it claims %d rows", ErrDamaged, f.NumRows())
	}
	return checkChunks(f)
}

// checkChunks refuses column chunks that write cannot have made. Other codecs
// of the library allocate what a damaged page asks for, without bound.
func checkChunks(f *parquet.File) error {
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			m := c.MetaData
			if m.Codec != format.Zstd || m.TotalCompressedSize < 0 || m.TotalCompressedSize > f.Size() {
				return fmt.Errorf("%w: column %s: %d bytes of %s", ErrDamaged, m.PathInSchema, m.TotalCompressedSize, m.Codec)
			}
			if m.NumValues != group.NumRows || m.TotalUncompressedSize < 0 || m.TotalUncompressedSize > chunkMax {
				return fmt.Errorf("%w: column %s: %d values of %d", ErrDamaged, m.PathInSchema, m.NumValues, group.NumRows)
			}
		}
	}
	return nil
}

func scanRows[T any](f *parquet.File, each func([]T) error) (err error) {
	var reader *parquet.GenericReader[T]
	if err := guard(func() error { reader = parquet.NewGenericReader[T](f); return nil }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard(reader.Close)) }()
	chunk := make([]T, rowsPerRead)
	for seen := int64(0); ; {
		var n int
		err := guard(func() (err error) {
			n, err = reader.Read(chunk)
			return err
		})
		seen += int64(n)
		if seen > f.NumRows() {
			return fmt.Errorf("%d rows where the footer says %d", seen, f.NumRows())
		}
		if n > 0 {
			if err := each(chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && seen == f.NumRows():
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%d rows of %d: %w", seen, f.NumRows(), io.ErrUnexpectedEOF)
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%d rows where the footer says %d", seen, f.NumRows())
		}
	}
}
