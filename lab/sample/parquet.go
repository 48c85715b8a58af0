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
	kindOneWay  kind = "oneway/1"
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

// read turns the library's panics into ErrDamaged: parquet-go trusts the
// offsets and counts of a footer, and indexes out of range where they lie.
func read[T any](r io.ReaderAt, size int64, k kind) (rows []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("read %s: %w: %v", k, ErrDamaged, p)
		}
	}()
	if err := checkFooter(r, size); err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", k, ErrDamaged, err)
	}
	if err := checkKind[T](f, k); err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	if rows, err = readAll[T](f); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", k, ErrDamaged, err)
	}
	return rows, nil
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

// readAll grows the rows as they are read: their number is the footer's word
// until then.
func readAll[T any](f *parquet.File) ([]T, error) {
	reader := parquet.NewGenericReader[T](f)
	defer reader.Close()
	rows := make([]T, 0, min(f.NumRows(), rowsPerRead))
	chunk := make([]T, rowsPerRead)
	for {
		n, err := reader.Read(chunk)
		rows = append(rows, chunk[:n]...)
		switch {
		case errors.Is(err, io.EOF) && int64(len(rows)) == f.NumRows():
			return rows, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%d rows of %d: %w", len(rows), f.NumRows(), io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		case n == 0 || int64(len(rows)) > f.NumRows():
			return nil, fmt.Errorf("%d rows where the footer says %d", len(rows), f.NumRows())
		}
	}
}
