package sample

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// requests makes n rows as a load would: some warm-up, some failed.
func requests(n int) []Request {
	rows := make([]Request, n)
	for i := range rows {
		at := int64(1e15) + int64(i)*1_000_003
		rows[i] = Request{
			Thread: int32(i % 7), Connection: int32(1 + i/1000), Index: int32(1 + i%1000), Warmup: i < 10,
			ScheduledNs: at, SentNs: at + 1, FirstByteNs: at + 500_000, LastByteNs: at + 600_000, Status: 200,
		}
		switch i % 50 {
		case 3:
			rows[i].Status, rows[i].Error = 503, "status 503"
		case 17:
			rows[i].SentNs, rows[i].FirstByteNs, rows[i].LastByteNs, rows[i].Status = 0, 0, 0, 0
			rows[i].Error = "dial refused"
		}
	}
	return rows
}

func encodeRequests(t testing.TB, rows []Request) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRequests(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeOneWay(t testing.TB, rows []OneWay) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOneWay(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRequestsRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, rowsPerRead, rowsPerRead + 1, 30_000} {
		want := requests(n)
		file := encodeRequests(t, want)
		got, err := ReadRequests(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d rows came back different", n)
		}
	}
}

func TestOneWayRoundTrip(t *testing.T) {
	want := []OneWay{{0, 0, 1, 2, 3}, {0, 1, math.MaxInt64, 0, 0}, {7, 2, 1_700_000_000_000_000_000, 1_700_000_000_000_021_500, 1_700_000_000_000_033_500}, {7, 3, 0, 0, 0}}
	file := encodeOneWay(t, want)
	got, err := ReadOneWay(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRequestsAreSmallOnDisk(t *testing.T) {
	rows := requests(30_000)
	const rawRow = 4*4 + 1 + 4*8 // numbers alone
	if got, bound := len(encodeRequests(t, rows)), len(rows)*rawRow/4; got > bound {
		t.Errorf("%d rows take %d bytes; a quarter of their plain size is %d", len(rows), got, bound)
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	var foreign, old bytes.Buffer
	if err := parquet.Write(&foreign, []OneWay{{0, 1, 2, 3, 4}}); err != nil {
		t.Fatal(err)
	}
	if err := parquet.Write(&old, requests(3), parquet.KeyValueMetadata(kindKey, "request/0")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"empty", nil, ErrSchema, "0 bytes"},
		{"text", []byte("thread,connection,index\n1,1,1\n"), ErrSchema, "no Parquet file"},
		{"parquet of somebody else", foreign.Bytes(), ErrSchema, "Skerry did not write it"},
		{"one-way samples", encodeOneWay(t, []OneWay{{0, 1, 2, 3, 4}}), ErrSchema, `"oneway/2"`},
		{"another version", old.Bytes(), ErrSchema, `"request/0"`},
	} {
		rows, err := ReadRequests(bytes.NewReader(c.file), int64(len(c.file)))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v, want %v that says %s", c.name, err, c.want, c.says)
		}
		if rows != nil {
			t.Errorf("%s: got %d rows beside the error", c.name, len(rows))
		}
	}
}

func TestReadRefusesOtherColumns(t *testing.T) {
	var b bytes.Buffer
	if err := parquet.Write(&b, []OneWay{{0, 1, 2, 3, 4}}, parquet.KeyValueMetadata(kindKey, string(kindRequest))); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRequests(bytes.NewReader(b.Bytes()), int64(b.Len())); !errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v, want %v", err, ErrDamaged)
	}
}

func TestReadRefusesTruncatedFiles(t *testing.T) {
	file := encodeRequests(t, requests(500))
	for n := range file {
		cut := file[:n]
		if _, err := ReadRequests(bytes.NewReader(cut), int64(n)); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrSchema) {
			t.Fatalf("%d bytes of %d: got error %v", n, len(file), err)
		}
	}
}

// Other codecs of the library allocate whatever a damaged page asks for.
func TestReadRefusesOtherCodecs(t *testing.T) {
	var b bytes.Buffer
	if err := parquet.Write(&b, requests(60), parquet.KeyValueMetadata(kindKey, string(kindRequest)), parquet.Compression(&parquet.Lz4Raw)); err != nil {
		t.Fatal(err)
	}
	_, err := ReadRequests(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "LZ4") {
		t.Errorf("got error %v, want %v that names the codec", err, ErrDamaged)
	}
}

// No single damaged byte may panic, or pass as rows that are fewer or more.
func TestReadSurvivesAnyDamagedByte(t *testing.T) {
	file := encodeOneWay(t, []OneWay{{0, 0, 1, 2, 3}, {0, 1, 3, 0, 0}, {0, 2, 5, 9, 9}})
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0xff
		rows, err := ReadOneWay(bytes.NewReader(damaged), int64(len(file)))
		if err != nil && !known(err) {
			t.Errorf("byte %d: error of no kind: %v", i, err)
		}
		if err == nil && len(rows) != 3 {
			t.Errorf("byte %d: %d rows and no error", i, len(rows))
		}
	}
}

func TestReadReportsTheDisk(t *testing.T) {
	disk := errors.New("input/output error")
	if _, err := ReadRequests(failing{disk}, 1000); !errors.Is(err, disk) {
		t.Errorf("got error %v, want %v", err, disk)
	}
}

func TestWriteReportsTheDisk(t *testing.T) {
	full := errors.New("no space left on device")
	if err := WriteRequests(failing{full}, requests(100)); !errors.Is(err, full) {
		t.Errorf("got error %v, want %v", err, full)
	}
	if err := WriteOneWay(failing{full}, []OneWay{{0, 1, 2, 3, 4}}); !errors.Is(err, full) {
		t.Errorf("one-way: got error %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error)         { return 0, f.err }
func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// FuzzRead holds that no file panics, and that a file that reads can be
// written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte("PAR1"))
	f.Add(encodeRequests(f, nil))
	f.Add(encodeRequests(f, requests(60)))
	f.Add(encodeOneWay(f, []OneWay{{0, 0, 1, 2, 3}, {0, 1, 3, 0, 0}}))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := ReadOneWay(bytes.NewReader(file), int64(len(file))); err != nil && !known(err) {
			t.Errorf("one-way: error of no kind: %v", err)
		}
		rows, err := ReadRequests(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			if !known(err) {
				t.Errorf("requests: error of no kind: %v", err)
			}
			return
		}
		again := encodeRequests(t, rows)
		got, err := ReadRequests(bytes.NewReader(again), int64(len(again)))
		if err != nil || !slices.Equal(got, rows) {
			t.Errorf("%d rows do not survive a round trip: %v", len(rows), err)
		}
	})
}

func known(err error) bool { return errors.Is(err, ErrSchema) || errors.Is(err, ErrDamaged) }

// A scan hands on what a read returns, some rows at a time, and ends where it is
// told to.
func TestScanRequests(t *testing.T) {
	want := requests(5000)
	file := encodeRequests(t, want)
	var got []Request
	calls := 0
	each := func(rows []Request) error {
		got, calls = append(got, rows...), calls+1
		return nil
	}
	if err := ScanRequests(bytes.NewReader(file), int64(len(file)), each); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) || calls < 2 {
		t.Errorf("%d rows in %d calls, want the %d that were written in several", len(got), calls, len(want))
	}
	enough := errors.New("enough")
	calls = 0
	err := ScanRequests(bytes.NewReader(file), int64(len(file)), func([]Request) error { calls++; return enough })
	if !errors.Is(err, enough) || errors.Is(err, ErrDamaged) || calls != 1 {
		t.Errorf("got %v after %d calls, want the caller's own error after one", err, calls)
	}
}
