package run

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// A turn keeps its place in the order, and so its seed, whatever is complete.
func TestTodo(t *testing.T) {
	e := example()
	e.Systems, e.Repetitions = []string{"direct", "other"}, 3
	s, err := create(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	r := runner{Options: Options{Experiment: e, Seed: 3}, store: s}
	for _, i := range []int{0, 3} {
		turn := r.turns()[i]
		writeSamples(t, s, turn)
		if err := s.complete(turn, Repetition{}); err != nil {
			t.Fatal(err)
		}
	}
	writeSamples(t, s, r.turns()[1]) // partial: not complete
	if got := r.todo(); len(got) != 4 || got[0] != 1 || got[1] != 2 || got[2] != 4 || got[3] != 5 {
		t.Errorf("todo %v, want 1 2 4 5", got)
	}
}

func TestLook(t *testing.T) {
	s := written(t, 1)
	status, err := Look(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	const cell = "near/direct/hello-world 1 thread kept"
	if status.State != Stopped || status.Done != 1 || status.Total != 2 || status.Cell != cell || status.Repetition != 2 ||
		status.Requests != 10 || status.Errors != 0 || !status.Began.Equal(time.Unix(100, 0)) {
		t.Errorf("got %+v", status)
	}
	lock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	// To look takes nothing: a second look sees the same.
	for range 2 {
		if status, err = Look(s.dir); err != nil || status.State != Running {
			t.Errorf("locked: %+v, %v", status, err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if status, err = Look(written(t, 2).dir); err != nil || status.State != Complete || status.Cell != "" || status.LeftS != 0 {
		t.Errorf("complete: %+v, %v", status, err)
	}
	if _, err := Look(t.TempDir()); !errors.Is(err, ErrNoRun) {
		t.Errorf("got %v, want ErrNoRun", err)
	}
}

// What runs now is what was begun last: a turn that was rejected waits for its next
// try, and a killed run may have left another.
func TestLookUnderWay(t *testing.T) {
	s := written(t, 0)
	lock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	for _, now := range []int{1, 2} {
		for n := 1; n <= 2; n++ {
			turn, at := Turn{Cell: example().Cells()[0], Repetition: n}, time.Unix(1000, 0)
			if n == now {
				at = time.Unix(2000, 0)
			}
			writeSamples(t, s, turn)
			if err := os.Chtimes(s.partialDir(turn), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if status, err := Look(s.dir); err != nil || status.State != Running || status.Repetition != now {
			t.Errorf("repetition %d was begun last: %+v, %v", now, status, err)
		}
	}
}

// Failed requests count, warm-up does not.
func TestLookErrors(t *testing.T) {
	s := written(t, 1)
	path := filepath.Join(s.turnDir(Turn{Cell: example().Cells()[0], Repetition: 1}), samplesFile)
	var file bytes.Buffer
	rows := []sample.Request{{Error: "timeout", Warmup: true}, {Error: "timeout"}, {Status: 200}, {Error: "missed"}}
	if err := errors.Join(sample.WriteRequests(&file, rows), os.WriteFile(path, file.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	if status, err := Look(s.dir); err != nil || status.Requests != 3 || status.Errors != 2 {
		t.Errorf("got %+v, %v", status, err)
	}
}

func TestResumeRefuses(t *testing.T) {
	ctx := context.Background()
	empty := t.TempDir()
	if err := Resume(ctx, Options{Dir: empty}); !errors.Is(err, ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
	if entries, _ := os.ReadDir(empty); len(entries) > 0 {
		t.Errorf("left in a folder without a run: %v", entries)
	}
	s := written(t, 1)
	changed, ok := errors.AsType[*ChangedError](Resume(ctx, Options{Dir: s.dir, Digests: map[string]string{"direct": "other"}}))
	if !ok || changed.System != "direct" {
		t.Errorf("changed plug-in: %v", changed)
	}
	cell := example().Cells()[0]
	lacking, ok := errors.AsType[*LackingError](Resume(ctx, Options{Dir: s.dir, NotRunnable: map[string]string{cell.ID(): "it needs 9 cores"}}))
	if !ok || lacking.Cell != cell.String() || lacking.Why != "it needs 9 cores" {
		t.Errorf("a machine that lacks what the cell needs: %v", lacking)
	}
	lock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := Resume(ctx, Options{Dir: s.dir}); !errors.Is(err, ErrRunning) {
		t.Errorf("locked: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run that was killed after its last repetition gets its end from that.
func TestResumeComplete(t *testing.T) {
	s := written(t, 1)
	turn, end := Turn{Cell: example().Cells()[0], Repetition: 2}, time.Unix(160, 0)
	writeSamples(t, s, turn)
	if err := s.complete(turn, Repetition{Cell: turn.Cell, Repetition: 2, Ended: end}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Resume(context.Background(), Options{Dir: s.dir}); err != nil {
			t.Fatal(err)
		}
		if record, err := s.record(); err != nil || !record.Ended.Equal(end) || len(record.Resumed) > 0 {
			t.Errorf("record %+v, %v", record, err)
		}
	}
}

// TestRowBytes holds the estimate of disk space to what the samples of a load
// take: 32 threads, times that jitter in all digits.
func TestRowBytes(t *testing.T) {
	const rows = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	var requests []sample.Request
	now := int64(1e15)
	for i := range int32(rows) {
		now += random.Int64N(1e6)
		first := now + 1e5 + random.Int64N(1e8)
		requests = append(requests, sample.Request{
			Thread: i % 32, Connection: 1, Index: i/32 + 1, Status: 200,
			ScheduledNs: now, SentNs: now + random.Int64N(1e6), FirstByteNs: first, LastByteNs: first + random.Int64N(1e6),
		})
	}
	var file bytes.Buffer
	if err := sample.WriteRequests(&file, requests); err != nil {
		t.Fatal(err)
	}
	perRow := float64(file.Len()) / rows
	t.Logf("%.1f bytes a row", perRow)
	if perRow > rowBytes || perRow < rowBytes/2 {
		t.Errorf("%.1f bytes a row, the estimate says %d", perRow, rowBytes)
	}
}

func TestTurnBytes(t *testing.T) {
	closed := experiment.Cell{Threads: 2, Iterations: 90, Warmup: 10}
	open := experiment.Cell{Threads: 2, OpenLoop: experiment.OpenLoop{Rate: 50, Duration: quantity.Duration(4 * time.Second)}}
	for name, c := range map[string]experiment.Cell{"closed": closed, "open": open} {
		if got := turnBytes(c); got != 200*rowBytes+repetitionBytes {
			t.Errorf("%s: %f bytes", name, got)
		}
	}
	timed := experiment.Cell{Threads: 2, OpenLoop: experiment.OpenLoop{Duration: quantity.Duration(4 * time.Second)}}
	if got := turnBytes(timed); got != 4*timedRate*rowBytes+repetitionBytes {
		t.Errorf("by time: %f bytes", got)
	}
	timed.Duration = quantity.Duration(time.Hour)
	if got := turnBytes(timed); got != timedMost*rowBytes+repetitionBytes {
		t.Errorf("for an hour: %f bytes", got)
	}
}

func TestEnoughSpace(t *testing.T) {
	r := runner{Options: Options{Experiment: example()}, store: written(t, 1)}
	if err := r.enoughSpace(); err != nil {
		t.Error(err)
	}
	// More than any disk has.
	r.Experiment.Load.Iterations = math.MaxInt32 << 30
	e, ok := errors.AsType[*SpaceError](r.enoughSpace())
	if !ok || e.Need < 1<<60 || !strings.Contains(e.Error(), " 2 times that free; ") {
		t.Errorf("got %v", e)
	}
}
