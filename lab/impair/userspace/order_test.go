package userspace

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
)

// orders gives the control side of a data path whose kernel is a test what it
// needs to make orders ready.
func orders(t *testing.T) *Engine {
	t.Helper()
	e := newWire(t, nil).engine
	e.acks = make(chan ack, acksMax)
	e.queues, e.bound, e.past = map[string]uint16{}, map[uint16]bool{}, map[string]impair.Counters{}
	return e
}

func routed(name string, does impair.Impairment) impair.Direction {
	return impair.Direction{Name: name, Match: impair.Match{In: "c1", Out: name}, Impairment: does}
}

// write makes a file and gives its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// prepared is an order made ready as a Change does it, with the files of the one
// before.
func prepared(t *testing.T, e *Engine, known files, directions ...impair.Direction) readyOrder {
	t.Helper()
	o, err := e.prepareLocked(directions, nil, known.next())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// An order that cannot be carried out leaves all directions, their counters and
// their order as they are, whichever of its directions is to blame.
func TestRefusedOrderChangesNothing(t *testing.T) {
	e := orders(t)
	e.drops = func() (map[uint16]uint64, error) { return nil, nil }
	e.order, e.ruled = []string{"c2", "c3"}, nil
	var before []*direction
	for _, name := range e.order {
		q, err := e.queueLocked(name)
		if err != nil {
			t.Fatal(err)
		}
		e.table[q].Store(newDirection(impair.Stages{{Delay: ms}}, 1))
		before = append(before, e.table[q].Load())
	}
	e.past["c2"] = impair.Counters{Packets: 3}
	gone := filepath.Join(t.TempDir(), "gone.csv")
	order := []impair.Direction{routed("c2", impair.Impairment{Delay: 9 * ms})}
	for name, refused := range map[string]impair.Direction{
		"trace":        routed("c3", impair.Impairment{Trace: gone}),
		"distribution": routed("c3", impair.Impairment{Distribution: impair.Distribution(gone)}),
		"stages":       {Name: "c3", Impairment: impair.Impairment{Delay: ms}, Then: make([]impair.Impairment, impair.StagesMax)},
	} {
		if err := e.Set(append(order, refused)); err == nil || !strings.HasPrefix(err.Error(), "link c3: ") {
			t.Errorf("%s: set: %v", name, err)
		}
		if _, err := e.Change(append(order, refused)); err == nil {
			t.Errorf("%s is not refused", name)
		}
		if !slices.Equal(e.order, []string{"c2", "c3"}) || e.table[0].Load() != before[0] || e.table[1].Load() != before[1] {
			t.Errorf("%s: in force are now %v", name, e.order)
		}
		if all, err := e.Counters(); err != nil || all["c2"].Packets != 3 {
			t.Errorf("%s: counters are %+v, %v", name, all, err)
		}
	}
}

// A link that goes on follows its files as they were when it began to, also where
// they have gone; one that begins follows them as they are.
func TestFilesAreReadOnce(t *testing.T) {
	e := orders(t)
	trace, delays := write(t, "up.trace", "1\n"), write(t, "wan.csv", "2\n4\n")
	replays := routed("c2", impair.Impairment{Trace: trace})
	follows := routed("c3", impair.Impairment{Distribution: impair.Distribution(delays)})
	first := prepared(t, e, files{}, replays, follows)
	for _, name := range []string{trace, delays} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	second := prepared(t, e, first.files, replays, follows, routed("c4", impair.Impairment{Loss: 1}))
	third := prepared(t, e, second.files, replays, follows)
	for i, l := range third.links {
		was, is := first.links[i].next.stages[0], l.next.stages[0]
		if is.Table != was.Table || is.Delay != was.Delay || is.Jitter != was.Jitter || (is.player == nil) != (was.player == nil) {
			t.Errorf("%s does %s, before it did %s", l.name, is, was)
		}
	}
	for _, d := range []impair.Direction{replays, follows} {
		if _, err := e.prepareLocked([]impair.Direction{d}, nil, files{}.next()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s begins with a file that has gone: %v", d.Name, err)
		}
	}
}

// answer is the kernel's to a request: 0 or a negative errno.
func answer(number uint32, code int32) []byte {
	b := make([]byte, 36)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], 2) // NLMSG_ERROR
	binary.NativeEndian.PutUint32(b[8:], number)
	binary.NativeEndian.PutUint32(b[16:], uint32(code))
	return b
}

// What the kernel says of verdicts, or to a request that was given up, is no answer
// to another one.
func TestAnswersBelongToTheirRequests(t *testing.T) {
	w := newWire(t, nil)
	w.engine.acks = make(chan ack, acksMax)
	const stale = -int32(unix.ENOENT)
	for _, c := range []struct {
		name    string
		answers [][]byte
		want    error
	}{
		{"yes", [][]byte{answer(1, 0)}, nil},
		{"no", [][]byte{answer(2, -int32(unix.EPERM))}, unix.EPERM},
		{"a verdict's before", [][]byte{answer(0, stale), answer(3, 0)}, nil},
		{"many verdicts'", append(slices.Repeat([][]byte{answer(0, stale)}, 2*acksMax), answer(4, 0)), nil},
		{"one that was given up", [][]byte{answer(4, stale), answer(5, 0)}, nil},
	} {
		for _, a := range c.answers {
			w.acknowledge(a)
		}
		message := bindMessages(0, true, copyRange, queueLength)[0]
		if err := w.engine.configureLocked(message); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		sent := make([]byte, 1<<10)
		if _, err := unix.Read(w.kernel, sent); err != nil || binary.NativeEndian.Uint32(sent[8:]) != w.engine.asked {
			t.Errorf("%s: the kernel was asked number %d, %v, want %d", c.name, binary.NativeEndian.Uint32(sent[8:]), err, w.engine.asked)
		}
	}
}

// Drops of the kernel count from the time at which directions were set.
func TestMissedBeginsAnew(t *testing.T) {
	e := orders(t)
	dropped := uint64(0)
	e.drops = func() (map[uint16]uint64, error) { return map[uint16]uint64{0: dropped, 1: 1}, nil }
	if _, err := e.queueLocked("c2"); err != nil {
		t.Fatal(err)
	}
	e.table[0].Store(newDirection(impair.Stages{{Delay: ms}}, 1))
	want := func(when string, missed uint64) {
		t.Helper()
		e.order = []string{"c2"}
		if all, err := e.Counters(); err != nil || all["c2"].Missed != missed {
			t.Errorf("%s: %+v, %v, want %d missed", when, all, err, missed)
		}
	}
	dropped = 3
	want("since the queue was bound", 3)
	if err := e.Set(nil); err != nil {
		t.Fatal(err)
	}
	want("right after links were set", 0)
	dropped = 5
	want("after two drops more", 2)
}
