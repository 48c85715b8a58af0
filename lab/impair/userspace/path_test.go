package userspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// wire is a data path whose kernel is this test: it says when packets come, and
// reads what becomes of them.
type wire struct {
	*path
	kernel int
	buffer []byte // of its verdicts
	left   []departure
}

// departure is a packet that the kernel was told to let go.
type departure struct {
	id uint32
	at int64
	// bytes in place of its own, if any.
	bytes []byte
}

func newWire(t *testing.T, d *direction) *wire {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) })
	e := &Engine{socket: &socket{fd: pair[0], raw: -1, raw6: -1}}
	e.table[0].Store(d)
	return &wire{kernel: pair[1], buffer: make([]byte, 1<<18), path: &path{
		engine: e, pending: newPending(1 << 12), parcels: newParcels(1<<12, 1<<8), epoch: time.Now(),
	}}
}

// carry has the packets come and go, all at the times that they are due. Each
// has so many bytes, or the bytes given.
func (w *wire) carry(t *testing.T, packets []departure, length int) []departure {
	t.Helper()
	next := func() int64 { return w.pending.items[0].due }
	for _, p := range packets {
		for len(w.pending.items) > 0 && next() <= p.at {
			w.goOn(t, next())
		}
		q := queued{id: p.id, length: max(length, len(p.bytes)), head: p.bytes}
		if err := w.decide(q, p.at); err != nil {
			t.Fatal(err)
		}
	}
	for len(w.pending.items) > 0 {
		w.goOn(t, next())
	}
	return w.left
}

// goOn releases what is due and reads the verdicts.
func (w *wire) goOn(t *testing.T, now int64) {
	t.Helper()
	if err := w.release(now); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := unix.Read(w.kernel, w.buffer)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for b := w.buffer[:n]; len(b) > 0; {
			length := int(binary.NativeEndian.Uint32(b))
			d := departure{id: binary.BigEndian.Uint32(b[28:]), at: now}
			if length > verdictLen {
				d.bytes = slices.Clone(b[verdictLen+4 : length])
			}
			if binary.BigEndian.Uint32(b[24:]) == verdictAccept {
				w.left = append(w.left, d)
			}
			b = b[(length+3)&^3:]
		}
	}
}

// evenly are n packets, one each interval, with the bytes given.
func evenly(n int, interval time.Duration, content []byte) []departure {
	packets := make([]departure, n)
	for i := range packets {
		packets[i] = departure{id: uint32(i), at: int64(i) * int64(interval), bytes: content}
	}
	return packets
}

// Two stages do to every packet what two links in a row do, to the nanosecond.
func TestStagesAreLinksInARow(t *testing.T) {
	const length, seed = 1000, 77
	stages := impair.Stages{
		{Delay: 3 * ms, Jitter: 2 * ms, Distribution: impair.Pareto, Unordered: true, Loss: 0.05},
		{Delay: 5 * ms, Jitter: ms, Rate: 12e6, Queue: 20_000, Reorder: 0.1, Burst: impair.Burst{Enter: 0.01, Leave: 0.2}},
		{Delay: ms},
	}
	packets := evenly(2000, 600*time.Microsecond, nil)
	whole := newWire(t, newDirection(stages, seed))
	got := whole.carry(t, packets, length)
	var all impair.Counters
	for i, s := range stages {
		link := newDirection(impair.Stages{s}, 0)
		link.stages[0] = newStage(s, seed, uint64(i))
		packets = newWire(t, link).carry(t, packets, length)
		c := link.snapshot(0)
		if i > 0 {
			all.Came[i-1] = c.Packets
		}
		c.Packets, c.Bytes = 0, 0
		all = all.Plus(c)
	}
	if !slices.EqualFunc(got, packets, func(a, b departure) bool { return a.id == b.id && a.at == b.at }) {
		t.Errorf("%d packets left three stages, %d three links, or at other times", len(got), len(packets))
	}
	all.Packets, all.Bytes = 2000, 2000*length
	counted := whole.engine.table[0].Load().snapshot(0)
	if counted != all || all.Lost == 0 || all.Overflowed == 0 || all.Reordered == 0 {
		t.Errorf("stages count %+v, links %+v", counted, all)
	}
	if free := len(whole.parcels.free); free != len(whole.parcels.all)-1 {
		t.Errorf("%d of %d parcels are free again", free, len(whole.parcels.all)-1)
	}
}

// ipv4 is a packet with a header and a payload of zeros.
func ipv4(length int) []byte {
	b := make([]byte, length)
	b[0], b[9] = 0x45, unix.IPPROTO_UDP
	copy(b[16:], []byte{192, 0, 2, 1})
	return b
}

// Chosen packets leave with one other bit behind their header; whichever stage
// chose them, as late as all others.
func TestCorruption(t *testing.T) {
	const n, length, header = 2000, 60, 20
	corrupt := impair.Impairment{Corrupt: 0.2}
	for name, stages := range map[string]impair.Stages{
		"first": {{Delay: ms, Corrupt: 0.2}}, "last": {{Delay: ms}, corrupt}, "both": {{Delay: ms, Corrupt: 0.2}, corrupt},
		"first of two": {corrupt, {Delay: ms}},
	} {
		w := newWire(t, newDirection(stages, 5))
		content := ipv4(length)
		left := w.carry(t, evenly(n, 100*time.Microsecond, content), 0)
		altered, flipped := 0, map[int]int{}
		for i, d := range left {
			if d.id != uint32(i) || d.at != int64(i)*100_000+1e6 {
				t.Fatalf("%s: packet %d left as number %d at %d ns", name, d.id, i, d.at)
			}
			if d.bytes == nil {
				continue
			}
			altered++
			if len(d.bytes) != length || !bytes.Equal(d.bytes[:header], content[:header]) {
				t.Fatalf("%s: the header is now %x", name, d.bytes)
			}
			other := 0
			for at, b := range d.bytes[header:] {
				other += bits.OnesCount8(b)
				if b != 0 {
					flipped[at]++
				}
			}
			if name != "both" && other != 1 {
				t.Errorf("%s: a packet has %d other bits", name, other)
			}
		}
		c := w.engine.table[0].Load().snapshot(0)
		if len(left) != n || name != "both" && c.Corrupted != uint64(altered) || len(flipped) != length-header {
			t.Errorf("%s: %d of %d left, %d altered at %d places; counted %+v", name, len(left), n, altered, len(flipped), c)
		}
		chance := 0.2
		if name == "both" {
			chance = 1 - 0.8*0.8
		}
		wantBinomial(t, name, altered, n, chance)
		if !bytes.Equal(content, ipv4(length)) {
			t.Errorf("%s: the kernel's own bytes were altered", name)
		}
	}
}

// A copy meets the stages behind; one that the kernel does not take is missed.
func TestCopies(t *testing.T) {
	const n = 1000
	w := newWire(t, newDirection(impair.Stages{{Delay: ms, Duplicate: 1}, {Delay: ms, Loss: 0.5}}, 5))
	left := w.carry(t, evenly(n, 100*time.Microsecond, ipv4(60)), 0)
	c := w.engine.table[0].Load().snapshot(0)
	if c.Duplicated != n || uint64(len(left))+c.Missed+c.Lost != 2*n || c.Packets != n {
		t.Errorf("%d packets left, counted %+v", len(left), c)
	}
	if c.Came[0] != 2*n {
		t.Errorf("%d packets and copies came to the second stage, want %d", c.Came[0], 2*n)
	}
	wantBinomial(t, "lost", int(c.Lost), 2*n, 0.5)
	wantBinomial(t, "copies that arrive", int(c.Missed), n, 0.5)
	if len(w.parcels.free) != len(w.parcels.all)-1 || len(w.parcels.buffers) == 0 {
		t.Error("parcels are not given back")
	}
}

// A packet of which only the head is known goes on as it is.
func TestUnknownBytesStayAsTheyAre(t *testing.T) {
	w := newWire(t, newDirection(impair.Stages{{Delay: ms, Corrupt: 1, Duplicate: 1}}, 5))
	left := w.carry(t, evenly(10, time.Millisecond, ipv4(60)), 1500)
	c := w.engine.table[0].Load().snapshot(0)
	if len(left) != 10 || left[0].bytes != nil || c.Corrupted+c.Duplicated+c.Missed > 0 {
		t.Errorf("%d packets left, the first with %x; counted %+v", len(left), left[0].bytes, c)
	}
}

// What there is no room for is counted as overflowed, and nothing is kept of it.
func TestRoomIsBounded(t *testing.T) {
	d := newDirection(impair.Stages{{Delay: 1000 * ms, Corrupt: 1}}, 5)
	w := newWire(t, d)
	w.parcels = newParcels(1<<12, 100)
	left := w.carry(t, evenly(300, time.Microsecond, ipv4(60)), 0)
	if c := d.snapshot(0); len(left) != 100 || c.Overflowed != 200 {
		t.Errorf("of 300 packets %d left; counted %+v", len(left), c)
	}
	stages := newDirection(impair.Stages{{Delay: 1000 * ms}, {Delay: ms}}, 5)
	w = newWire(t, stages)
	w.parcels = newParcels(50, 0)
	left = w.carry(t, evenly(80, time.Microsecond, nil), 60)
	if c := stages.snapshot(0); len(left) != 50 || c.Overflowed != 30 {
		t.Errorf("of 80 packets %d left two stages; counted %+v", len(left), c)
	}
}

// Packets that are under way when a direction becomes another one go on by what
// it is then.
func TestDirectionChangesUnderPackets(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after impair.Stages
		want          int64
	}{
		{"fewer stages", impair.Stages{{Delay: ms}, {Delay: 5 * ms}}, impair.Stages{{Delay: 9 * ms}}, 1e6},
		{"other stages", impair.Stages{{Delay: ms}, {Delay: 5 * ms}}, impair.Stages{{Delay: 9 * ms}, {Delay: 2 * ms}}, 3e6},
		{"more stages", impair.Stages{{Delay: ms}}, impair.Stages{{Delay: 9 * ms}, {Delay: 2 * ms}}, 1e6},
		{"copies from now on", impair.Stages{{Delay: ms}, {Delay: ms}}, impair.Stages{{}, {Corrupt: 1}}, 1e6},
	} {
		w := newWire(t, newDirection(c.before, 1))
		if err := w.decide(queued{id: 4, length: 60, head: ipv4(60)}, 0); err != nil {
			t.Fatal(err)
		}
		w.engine.table[0].Store(newDirection(c.after, 1))
		left := w.carry(t, nil, 0)
		if len(left) != 1 || left[0].at != c.want || left[0].bytes != nil {
			t.Errorf("%s: left %+v, want one at %d ns", c.name, left, c.want)
		}
	}
}

// anyStages are up to four stages of anything.
func anyStages(random *rand.Rand) impair.Stages {
	some := func(p float64) quantity.Fraction {
		if random.IntN(2) == 0 {
			return 0
		}
		return quantity.Fraction(p * random.Float64())
	}
	stages := make(impair.Stages, 1+random.IntN(4))
	for i := range stages {
		s := impair.Impairment{Delay: quantity.Duration(random.Int64N(5e6)), Unordered: random.IntN(2) == 0}
		s.Jitter = quantity.Duration(random.Int64N(int64(s.Delay) + 1))
		s.Distribution = []impair.Distribution{impair.Uniform, impair.Normal, impair.Pareto}[random.IntN(3)]
		s.Loss, s.Duplicate, s.Corrupt, s.Reorder = some(0.3), some(1), some(1), some(0.25)
		if s.Burst.Enter = some(1); s.Burst.Enter > 0 {
			s.Burst.Leave = 0.3
		}
		if random.IntN(2) == 0 {
			s.Rate, s.Queue = 1e6+quantity.Rate(random.Int64N(20e6)), quantity.Size(random.Int64N(5000))
		}
		stages[i] = s
	}
	return stages
}

// Whatever the stages do, every packet and every copy leaves, or is counted as
// lost, overflowed or missed, and nothing is kept of it.
func FuzzEveryPacketIsAccountedFor(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		const n = 300
		stages := anyStages(rand.New(rand.NewPCG(seed, 0)))
		w := newWire(t, newDirection(stages, seed))
		w.parcels = newParcels(200, 50)
		left := uint64(len(w.carry(t, evenly(n, 100*time.Microsecond, ipv4(100)), 0)))
		c := w.engine.table[0].Load().snapshot(0)
		// A copy that has no room is duplicated and overflowed; so is a packet that
		// would have been copied.
		least, most := n+c.Duplicated-min(c.Overflowed, c.Duplicated), n+c.Duplicated
		if all := left + c.Lost + c.Overflowed + c.Missed; c.Packets != n || all < least || all > most {
			t.Errorf("%s: %d of %d left, counted %+v", stages, left, n, c)
		}
		p := w.parcels
		if len(p.free) != len(p.all)-1 || len(p.buffers)+p.left != 50 {
			t.Errorf("%s: %d of %d parcels are free, %d of 50 buffers", stages, len(p.free), len(p.all)-1, len(p.buffers)+p.left)
		}
	})
}

func FuzzFlip(f *testing.F) {
	f.Add(ipv4(60))
	f.Add([]byte{0x4f, 1, 2})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := corruptible(b)
		if n < 0 || n > len(b) {
			t.Fatalf("%d of %d bytes", n, len(b))
		}
		if n == 0 {
			return
		}
		before := slices.Clone(b)
		flip(b, newStage(impair.Impairment{}, 1, 0).random)
		other := 0
		for i := range b {
			other += bits.OnesCount8(b[i] ^ before[i])
		}
		if other != 1 || !bytes.Equal(b[:len(b)-n], before[:len(b)-n]) {
			t.Errorf("%x became %x", before, b)
		}
	})
}

// The way of a packet over a link of one stage that copies nothing, without the
// kernel.
func BenchmarkDecide(b *testing.B) {
	e := &Engine{}
	e.table[0].Store(newDirection(impair.Stages{{Delay: 5 * ms, Loss: 0.0001}}, 1))
	p := &path{engine: e, pending: newPending(1 << 12), parcels: newParcels(1<<12, 1<<8), verdicts: make([]byte, 0, batch*verdictLen)}
	q := queued{length: 1500, head: ipv4(copyRange)}
	arrival := int64(0)
	for b.Loop() {
		arrival += 12_112
		if err := p.decide(q, arrival); err != nil {
			b.Fatal(err)
		}
		if len(p.pending.items) > 500 {
			p.pending.pop()
		}
		p.verdicts = p.verdicts[:0]
	}
}
